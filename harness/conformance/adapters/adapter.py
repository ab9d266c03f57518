#!/usr/bin/env python3
"""A consumer in Python: maps RING_FILE, drains it once, and prints the events.

usage: adapter.py RING_FILE PAGES SAMPLE_TYPE
"""
import mmap
import struct
import sys

RAW = 1 << 10
SAMPLE, LOST = 9, 2
HEAD, TAIL = 1024, 1032


def main(path, pages, sample_type):
    size = int(pages) * 4096
    raw_at = 8 + 8 * bin(int(sample_type) & ~RAW).count("1")
    with open(path, "r+b") as file:
        ring = mmap.mmap(file.fileno(), 4096 + size)

    def at(position, length):
        start = position % size
        piece = ring[4096 + start : 4096 + min(size, start + length)]
        return piece + ring[4096 : 4096 + length - len(piece)]

    head, tail = struct.unpack_from("QQ", ring, HEAD)
    left = (head - tail) % 2**32  # a 32-bit kernel's data_head has 32 bits
    end = (tail + left) % 2**64
    if left and (left > size or head % 8 or tail % 8):
        print("error positions")
        left = 0
    while left:
        kind, _, length = struct.unpack("IHH", at(tail, 8))
        if length < 8 or length % 8 or length > left:
            print("error header.size")
            break
        record = at(tail, length)
        if kind == SAMPLE:
            raw = int.from_bytes(record[raw_at : raw_at + 4], sys.byteorder)
            if length < raw_at + 4 or raw > length - raw_at - 4:
                print("error raw size")
            else:
                print("sample", record[raw_at + 4 : raw_at + 4 + raw].hex())
        elif kind == LOST and length >= 24:
            print("lost", *struct.unpack_from("Q", record, 16))
        else:
            print("error type", kind)
        tail += length
        left -= length
    # In one store. struct.pack_into() writes zeros first, which the kernel may read.
    ring[TAIL : TAIL + 8] = struct.pack("Q", end)
    print("tail", end)


main(*sys.argv[1:])
