#!/usr/bin/env python3
"""Writes the seeds that are bytes, from their readable form. Run it after a change of that:

  bazel build //fuzz:script_tool && fuzz/seeds.py        in the workspace's folder

hostile_ring's and the canary's are the rings below (fuzz/hostile_ring.h states the format), of
little-endian records; kernel_script's and differential's are the texts in fuzz/scripts/. Each is
named for what it shows. record's are the vectors of harness/record whose type or layout differs. (Those of the
parsers are texts as they are.)
"""
import json
import pathlib
import struct
import subprocess

SAMPLE, LOST = 9, 2


def record(kind, size, body=b""):
    """A record of `size` bytes, as its header says, of which these are the first behind it. The
    next is on an 8-byte boundary, and so is data_head: whatever size says, positions are sound."""
    filled = max(size, 8 + len(body)) + 7 & ~7
    return (struct.pack("=IHH", kind, 1, size & 0xFFFF) + body).ljust(filled, b"\xaa")


def sample(length):
    raw = (length + 4 + 7) // 8 * 8 - 4
    return record(SAMPLE, 12 + raw, struct.pack("=I", raw) + bytes(i % 251 for i in range(length)))


def liar(size, raw):
    return record(SAMPLE, size, struct.pack("=I", raw))


def lost(count, size=24):
    return record(LOST, size, struct.pack("=QQ", 7, count))


def ring(data, tail=0, distance=None, log2_pages=0, stops=(), pokes=(), times=1):
    """`stops`: events, negative to throw there. `pokes`: (event, slot, value)."""
    shape = log2_pages | len(pokes) << 3 | len(stops) << 5 | (0x80 if times > 1 else 0)
    if distance is None:
        distance = len(data) * times
    out = struct.pack("<BQQ", shape, tail & (2**64 - 1), distance & (2**64 - 1))
    out += bytes(stop - 1 if stop > 0 else 0xDF - stop for stop in stops)
    out += b"".join(struct.pack("<BHQ", *poke) for poke in pokes)
    if times > 1:
        out += bytes([times - 1])
    return out + data


# No raw size here has its highest bit set: the canary is to find that for itself, from some of them.
CANARY = ("empty", "three_samples", "run_of_equal_headers", "wrap_at_payload",
          "lost_with_sample_id", "breaks_once")
SOUND = {
    "empty": ring(b""),
    "three_samples": ring(sample(5) + sample(12) + sample(100)),
    "full_but_8_bytes": ring(sample(4), distance=4088, times=255),
    "full_to_the_byte": ring(sample(4), distance=4096, times=256),
    "run_of_equal_headers": ring(sample(44), times=20),
    "two_sizes_in_turn": ring(sample(4) + sample(12), times=30),
    "wrap_at_size_prefix": ring(sample(20), tail=4096 - 8),
    "wrap_at_payload": ring(sample(20), tail=4096 - 16),
    "wrap_at_record_end": ring(sample(20) + sample(4), tail=4096 - 32),
    "lost_at_ring_end": ring(lost(3) + sample(4), tail=4096 - 24),
    "lost_across_ring_end": ring(lost(3) + sample(4), tail=4096 - 16),
    "lost_with_sample_id": ring(lost(1, 48) + sample(4)),
    "crosses_2_32": ring(sample(20), tail=2**32 - 16, times=4),
    "crosses_2_64": ring(sample(20), tail=-16, times=4),
    "head_of_32_bits": ring(sample(4), tail=2**32 + 256, distance=16 - 2**32),
    "breaks_once": ring(sample(4), stops=(2,), times=12),
    "breaks_twice": ring(sample(4), stops=(2, 3), times=12),
    "throws_then_breaks": ring(sample(4), stops=(-2, 1), times=12),
    "sixteen_pages": ring(sample(900), log2_pages=4, times=60),
}
HOSTILE = {
    "oversize_65517": ring(record(SAMPLE, 0, struct.pack("=I", 65524))),
    "oversize_65525": ring(record(SAMPLE, 8) + struct.pack("=I", 65532) + b"\xbb" * 12),
    "oversize_65533": ring(liar(16, 65540) + sample(4)),
    "raw_size_one_too_large": ring(liar(24, 13) + sample(4)),
    "raw_size_2_31": ring(liar(24, 2**31 + 4) + sample(4)),
    "size_0": ring(record(SAMPLE, 0) + sample(4)),
    "size_4": ring(record(SAMPLE, 4) + sample(4)),
    "size_12": ring(record(SAMPLE, 12) + sample(4)),
    "size_20": ring(liar(20, 4) + sample(4)),
    "size_8": ring(record(SAMPLE, 8) + sample(4)),
    "size_past_head": ring(sample(4) + liar(65528, 4)[:16]),
    "lost_too_short": ring(record(LOST, 16) + sample(4)),
    "unexpected_type": ring(record(16, 32) + sample(4)),
    "longer_record_in_a_run": ring(sample(4) * 2 + liar(24, 4) + sample(4) * 3),
    "smaller_raw_size_in_a_run": ring(sample(4) * 2 + liar(16, 0) + sample(4) * 3),
    "nothing_but_headers": ring(record(0, 8), times=100),
    "tail_off_the_grid": ring(sample(4), tail=4),
    "head_off_the_grid": ring(sample(4), distance=12),
    "further_than_the_ring": ring(sample(4), distance=4104),
    "further_than_2_gib": ring(sample(4), distance=2**31),
    "one_behind": ring(sample(4), tail=64, distance=-8),
    "header_changes_under_the_drain": ring(
        sample(4), pokes=((0, 2, 0x0008_0000_0000_0009), (1, 4, 2**64 - 1)), times=8),
    "head_moves_under_the_drain": ring(sample(4), pokes=((0, 0xFFFF, 4096),), times=8),
}


def script_bytes(script, drained=True):
    lines = script.read_text().splitlines(keepends=True)
    while not drained and lines[-1].startswith("drain"):
        lines.pop()
    tool = "bazel-bin/fuzz/script_tool"
    return subprocess.run([tool, "--bytes", "/dev/stdin"], input="".join(lines).encode(),
                          check=True, capture_output=True).stdout


def undamaged_ring(kernel_script):
    """differential's: no damage, and the script, whose encoding has two bytes more: 0 for RAW samples
    (fuzz/script_bytes.h)."""
    return b"\0" + kernel_script[:1] + b"\0\0" + kernel_script[1:]


def record_seeds():
    """Behind its attributes (fuzz/record.h), of each type and sample_type the first vector."""
    seeds, seen = {}, set()
    for line in pathlib.Path("harness/record/vectors.jsonl").read_text().splitlines():
        vector = json.loads(line)
        if "attr" not in vector or len(vector["bytes"]) > 2 * 480:
            continue
        attr = vector["attr"]
        number = lambda name: int(str(attr.get(name, 0)), 0)
        flags = number("flags") >> 18 & 1 | (number("flags") >> 34 & 1) << 1
        layout = (vector["type"], flags, number("sample_type"))
        if layout in seen:
            continue
        seen.add(layout)
        seeds[vector["name"]] = struct.pack(
            "<IBIQQB", number("sample_type"), number("read_format"), number("branch_sample_type"),
            number("sample_regs_user"), number("sample_regs_intr"), flags
        ) + bytes.fromhex(vector["bytes"])
    return seeds


def main():
    fuzz = pathlib.Path("fuzz")
    texts_of_scripts = sorted(fuzz.glob("scripts/*.script"))
    scripts = {text.stem: script_bytes(text) for text in texts_of_scripts}
    # Not drained at the end, so that there is something to compare.
    undamaged = {text.stem: undamaged_ring(script_bytes(text, drained=False))
                 for text in texts_of_scripts}
    for folder, seeds in {
        "hostile_ring": SOUND | HOSTILE,
        "canary": {name: SOUND[name] for name in CANARY},
        "kernel_script": scripts,
        "differential": undamaged,
        "record": record_seeds(),
    }.items():
        path = fuzz / f"{folder}_seeds"
        path.mkdir(exist_ok=True)
        for name, data in seeds.items():
            (path / name).write_bytes(data)


if __name__ == "__main__":
    main()
