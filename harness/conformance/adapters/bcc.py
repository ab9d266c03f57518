#!/usr/bin/env python3
"""bcc's perf_reader as a subject, on each online CPU: prints its callbacks' events until SIGINT.

usage: perfring conform -- python3 bcc.py {pages}
"""
import ctypes
import signal
import sys

RAW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
LOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
PERF_EVENT_ARRAY = 4

lib = ctypes.CDLL("libbcc.so.0", use_errno=True)
lib.bpf_open_perf_buffer.restype = ctypes.c_void_p
signal.signal(signal.SIGINT, signal.SIG_DFL)


@RAW
def on_sample(_, data, size):
    print("sample", ctypes.string_at(data, size).hex(), flush=True)


@LOST
def on_lost(_, count):
    print("lost", count, flush=True)


def online_cpus():
    with open("/sys/devices/system/cpu/online") as file:
        for part in file.read().strip().split(","):
            first, _, last = part.partition("-")
            yield from range(int(first), int(last or first) + 1)


pages = int(sys.argv[1]) if len(sys.argv) > 1 else 64
array = lib.bcc_create_map(PERF_EVENT_ARRAY, b"conform", 4, 4, 64, 0)
readers = []
for cpu in online_cpus():
    reader = lib.bpf_open_perf_buffer(on_sample, on_lost, None, -1, cpu, pages)
    if array < 0 or not reader:
        sys.exit("bpf_open_perf_buffer failed")
    readers.append(ctypes.c_void_p(reader))
    descriptor = ctypes.c_int(lib.perf_reader_fd(readers[-1]))
    lib.bpf_update_elem(array, ctypes.byref(ctypes.c_int(cpu)), ctypes.byref(descriptor), 0)
all_readers = (ctypes.c_void_p * len(readers))(*readers)
while True:
    lib.perf_reader_poll(len(readers), all_readers, 100)
