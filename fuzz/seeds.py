#!/usr/bin/env python3
"""Writes the seeds of a fuzz target from a readable form, each into a file named for what it shows:

  fuzz/seeds.py TARGET FOLDER        TARGET is, for example, two_consumers or parsers/litmus

The sources of the seeds:

  hostile_ring, planted_fault, merge   the rings below (fuzz/hostile_ring.h has the format)
  kernel_script, two_consumers         the scripts in fuzz/scripts.txt
  record                               the vectors of harness/record, one of each type and layout
  parsers/vectors                      some of these vectors, and fuzz/parsers/seeds.txt
  parsers/elf, parsers/perf_data       the files below
  other parsers                        fuzz/parsers/seeds.txt

The same sources give the same bytes on any machine: records and numbers are little-endian.
"""
import json
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).parent.parent
SAMPLE, LOST = 9, 2


def record(kind, size, body=b""):
    """Returns a record whose header.size is `size`, and whose body begins with `body`. It is padded
    to a multiple of 8, so that positions are sound whatever header.size is."""
    filled = max(size, 8 + len(body)) + 7 & ~7
    return (struct.pack("<IHH", kind, 1, size & 0xFFFF) + body).ljust(filled, b"\xaa")


def sample(length):
    raw = (length + 4 + 7) // 8 * 8 - 4
    return record(SAMPLE, 12 + raw, struct.pack("<I", raw) + bytes(i % 251 for i in range(length)))


def liar(size, raw):
    return record(SAMPLE, size, struct.pack("<I", raw))


def lost(count, size=24):
    return record(LOST, size, struct.pack("<QQ", 7, count))


def ring(data, tail=0, distance=None, log2_pages=0, stops=(), pokes=(), times=1):
    """`stops`: numbers of events; a negative one throws there. `pokes`: (event, slot, value)."""
    shape = log2_pages | len(pokes) << 3 | len(stops) << 5 | (0x80 if times > 1 else 0)
    if distance is None:
        distance = len(data) * times
    out = struct.pack("<BQQ", shape, tail & (2**64 - 1), distance & (2**64 - 1))
    out += bytes(stop - 1 if stop > 0 else 0xDF - stop for stop in stops)
    out += b"".join(struct.pack("<BHQ", *poke) for poke in pokes)
    if times > 1:
        out += bytes([times - 1])
    return out + data


# None of these raw sizes has its highest bit set: planted_fault has to find such a size itself.
PLANTED_FAULT = (
    "empty",
    "three_samples",
    "run_of_equal_headers",
    "wrap_at_payload",
    "lost_with_sample_id",
    "breaks_once",
)
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
    "oversize_65517": ring(record(SAMPLE, 0, struct.pack("<I", 65524))),
    "oversize_65525": ring(record(SAMPLE, 8) + struct.pack("<I", 65532) + b"\xbb" * 12),
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
    "a_ring_behind": ring(sample(4), tail=2**32, distance=-4096),
    "more_than_a_ring_behind": ring(sample(4), tail=64, distance=-4104),
    "one_behind_off_the_grid": ring(sample(4), tail=64, distance=-4),
    "head_goes_back_under_the_drain": ring(
        sample(4), pokes=((7, 0xFFFF, 64),), stops=(8,), times=8
    ),
    "header_changes_under_the_drain": ring(
        sample(4), pokes=((0, 2, 0x0008_0000_0000_0009), (1, 4, 2**64 - 1)), times=8
    ),
    "head_moves_under_the_drain": ring(sample(4), pokes=((0, 0xFFFF, 4096),), times=8),
}


def merge(first, second=None, records=20, runs=((5 << 57, 0), (2**64 - 1, 0))):
    """fuzz/hostile_merge.h has the format. `runs`: (clock, limit of events)."""
    out = bytes([(second is not None) | len(runs) << 1, records])
    out += b"".join(struct.pack("<QB", *run) for run in runs)
    return out + (first if second is None else struct.pack("<H", len(first)) + first + second)


def merge_seeds():
    """Each ring of SOUND and HOSTILE next to the sound ring of the target, and some pairs of rings."""
    seeds = {
        name: merge(bytes_)
        for name, bytes_ in (SOUND | HOSTILE).items()
        if name not in ("full_but_8_bytes", "full_to_the_byte", "two_sizes_in_turn")
    }
    raw_keyed = lambda *keys: b"".join(
        record(SAMPLE, 24, struct.pack("<IQ", 12, key)) for key in keys
    )
    keyed = lambda *keys: raw_keyed(*(key << 57 for key in keys))
    even = list(range(1000, 1120, 2))
    nested = ring(keyed(2, 1, 5, 4, 3, 9, 8, 7, 6, 0))
    hex_ = bytes.fromhex
    found = {  # by campaigns
        # Keys ahead of a clock that jumps back (M8).
        "clock_jumps_back": merge(
            b"", b"", runs=((2**64 - 256, 1), (0x0302_0000_0003_0200, 0), (0, 0))
        ).rstrip(b"\0"),
        # data_head goes back to before a record that was already read.
        "data_head_goes_back": merge(
            ring(
                hex_(
                    "09000000010018000c000000000c000000000414000f0004000000040a00ff0000000000ffffff06aaaaaa"
                ),
                distance=120,
                pokes=((1, 3, 2**64 - 1), (2, 0xFFFF, 8)),
            )
        ),
        # A far key that was not yet due held another ring's events back.
        "far_keys": hex_(
            "bfbfbfbf01007f6fddd614000000000000f775ff00ffffffffffffff000101000000000000000000f0000000"
            "0000000009000000010018000c0000000000000000000004aaaaaaaaefffffff010018000c00000000000000"
            "0002fefffffeaaba09000000010018000c000000000000000000ffff4f40008683800009000018000c000000"
            "ffffffffffffffffffffffffffffffffffffffffffffffff"
        ),
    }
    return (
        seeds
        | found
        | {
            "displaced_beside_a_lie": merge(nested, HOSTILE["size_0"]),
            "displaced_beyond_the_window": merge(ring(keyed(*range(1, 12), 0))),
            # A record after a full window, whose last key is one higher or equal.
            "late_by_one": merge(ring(raw_keyed(1000, *range(1002, 1010), 1001))),
            "late_by_one_in_a_run": merge(ring(raw_keyed(*even[:40], even[32] - 1, *even[40:]))),
            "not_late_in_a_run": merge(ring(raw_keyed(*even[:40], even[32], *even[40:]))),
            "limits": merge(
                nested, SOUND["lost_at_ring_end"], runs=((3 << 57, 2), (9 << 57, 1), (0, 3))
            ),
            "lost_without_a_sample": merge(ring(keyed(1) + lost(5)), runs=((4 << 57, 0),) * 3),
            "clock_goes_back": merge(nested, runs=((9 << 57, 0), (1, 0))),
            # All keys but the first are ahead of the clock: a full window of them. Each event takes the
            # key of the event before it (M8).
            "all_ahead_of_an_early_clock": hex_("130e13"),
            "keys_ahead": merge(nested, runs=((1, 0), (3 << 57, 0), (4 << 57, 0))),
            "two_without_positions": merge(
                HOSTILE["further_than_the_ring"], HOSTILE["more_than_a_ring_behind"]
            ),
            "two_whose_heads_went_back": merge(HOSTILE["a_ring_behind"], HOSTILE["one_behind"]),
            "stops_in_a_run": merge(ring(keyed(*range(9)), stops=(2, -3)), nested),
            "pokes_a_held_record": merge(
                ring(keyed(3, 9, 8, 7) + lost(2), pokes=((1, 3, 2**64 - 1), (2, 0xFFFF, 8)))
            ),
        }
    )


def texts(path):
    """Returns the text after each line `=== NAME` of a file, by name, without the empty lines around
    it."""
    found, name = {}, None
    for line in (ROOT / path).read_text().splitlines():
        if line.startswith("=== "):
            name = line.removeprefix("=== ")
            if name in found:
                raise ValueError(f"{path}: there are two '{name}'")
            found[name] = ""
        elif name is not None:
            found[name] += f"{line}\n"
        elif line and not line.startswith("#"):
            raise ValueError(f"{path}: '{line}' does not follow any `=== NAME`")
    return {name: text.strip("\n") for name, text in found.items()}


# In the order of the numbers in fuzz/script_bytes.cc. `tail` is not ForOracle.
STEPS = (
    "output",
    "drain",
    "throw",
    "poll",
    "epoll_wait",
    "rearm",
    "pause",
    "resume",
    "disable",
    "enable",
    "tail",
    "output second",
    "poll second",
)
NUMBERED = ("output", "drain", "throw")
EPOLL = ("level", "edge", "oneshot")
STEP = re.compile(r"(>*) ?(?:at (\d+) )?([a-z_]+)(?: (\d+))?( second)?")
SETTINGS = {
    "word": "64",
    "pages": "1",
    "events": "1",
    "epoll": "level",
    "sample_id_all": "0",
    "start": "0",
    "wakeup_events": "1",
    "wakeup_watermark": None,
}


def step_bytes(line):
    step = STEP.fullmatch(line)
    name = step and step[3] + (step[5] or "")
    if (
        name not in STEPS
        or (step[3] in NUMBERED) != (step[4] is not None)
        or bool(step[1]) != (step[2] is not None)
    ):
        raise ValueError(f"'{line}': a step that seeds.py does not know")
    number = int(step[4] or 0)
    width = 0 if number < 2**8 else 1 if number < 2**12 else 3
    out = bytes([STEPS.index(name) | len(step[1]) << 4 | width << 6])
    out += bytes([int(step[2])]) if step[1] else b""
    if step[4] is None:
        return out
    return out + (
        struct.pack("<BBH", 0, number >> 16, number & 0xFFFF)
        if width == 3
        else number.to_bytes(width + 1, "little")
    )


def script_bytes(text, kind=b""):
    """fuzz/script_bytes.h has the format. `kind`: the two bytes that ForOracle does not have."""
    settings, steps = dict(SETTINGS), b""
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        name, _, value = line.partition(" ")
        if name in SETTINGS:
            settings[name] = value
        elif line:
            steps += step_bytes(line)
    watermark = settings["wakeup_watermark"]
    flags = (
        (settings["word"] == "32")
        | (int(settings["pages"]).bit_length() - 1) << 1
        | (watermark is not None) << 3
        | (int(settings["events"]) - 1) << 4
        | EPOLL.index(settings["epoll"]) << 5
        | int(settings["sample_id_all"]) << 7
    )
    wakeup = int(watermark or settings["wakeup_events"])
    return bytes([flags]) + kind + struct.pack("<IQ", wakeup, int(settings["start"])) + steps


def scripts(bytes_of=script_bytes):
    seeds = {}
    for name, text in texts("fuzz/scripts.txt").items():
        try:
            seeds[name] = bytes_of(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return seeds


def undamaged_ring(text):
    """Returns a seed of two_consumers: no damage, and a script of RAW samples without the drains at
    its end, so that there is something to compare."""
    return b"\0" + script_bytes(re.sub(r"(\ndrain \d+)+$", "", text), b"\0\0")


def vectors():
    """Returns the lines of harness/record/vectors.jsonl, by name."""
    lines = (ROOT / "harness/record/vectors.jsonl").read_text().splitlines()
    return {json.loads(line)["name"]: line for line in lines}


def record_seeds():
    """Returns the first vector of each type and sample_type, after its attributes
    (fuzz/any_record.h)."""
    seeds, seen = {}, set()
    for name, line in vectors().items():
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
        seeds[name] = struct.pack(
            "<IBIQQB",
            number("sample_type"),
            number("read_format"),
            number("branch_sample_type"),
            number("sample_regs_user"),
            number("sample_regs_intr"),
            flags,
        ) + bytes.fromhex(vector["bytes"])
    return seeds


VECTORS = {
    "branches": "synthetic_sample_branch_counters",
    "build_id": "mmap2_build_id_sid",
    "group": "sample_read_group_rf31",
    "namespaces": "namespaces",
    "read_syscall": "read_syscall_group_rf8",
    "registers": "sample_regs_user_abi32",
    "tracepoint": "sample_tracepoint_sched_process_exec",
}


# Bits of sample_type, for perf_data().
TIME, PERIOD, ID_LAST = 1 << 2, 1 << 8, 1 << 16


def perf_data(piped=False):
    """Returns a perf.data file of two events; if `piped`, in the form of `perf record -o -`, with
    the attributes among the records."""
    events = [(TIME | ID_LAST, [5, 7]), (TIME | PERIOD | ID_LAST, [6])]
    attrs = [
        struct.pack("<IIQQQQQ", 1, 136, 9, 1, sample_type, 0, 1 << 18).ljust(136, b"\0")
        for sample_type, _ in events
    ]
    ids = [b"".join(struct.pack("<Q", each) for each in of) for _, of in events]
    records = b"".join(
        struct.pack("<IHH", kind, 2, 8 + len(body)) + body
        for kind, body in (
            (3, struct.pack("<II8sQQ", 1, 2, b"comm", 33, 7)),  # a COMM, then TIME and ID
            (SAMPLE, struct.pack("<QQQ", 6, 34, 100)),
            (71, struct.pack("<Q8x", 8) + b"\xff" * 8),  # an AUXTRACE, then its data
        )
    )
    if piped:
        header = b"PERFILE2" + struct.pack("<Q", 16)
        return (
            header
            + b"".join(
                struct.pack("<IHH", 64, 0, 8 + len(attr + of)) + attr + of
                for attr, of in zip(attrs, ids)
            )
            + records
        )
    at, sections = 104, b""
    for attr, of in zip(attrs, ids):
        sections += attr + struct.pack("<QQ", at, len(of))
        at += len(of)
    begin = at + len(sections)
    header = b"PERFILE2" + struct.pack(
        "<10Q", 104, 152, at, len(sections), begin, len(records), 0, 0, 0, 0
    )
    return header.ljust(104, b"\0") + b"".join(ids) + sections + records


def elf():
    """Returns an ELF file with a segment of code and a symbol in it."""
    names = b"\0symbol\0".ljust(16, b"\0")
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 18, 0, 1, 0x1010, 4)
    at = 64 + 56  # offset of the names, after the headers
    sections = bytes(64) + b"".join(
        struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, link, 0, 1, each)
        for kind, offset, size, link, each in ((3, at, 16, 0, 0), (2, at + 16, 48, 1, 24))
    )
    header = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0x1010, 64, at + 64, 0, 64, 56, 1, 64, 3, 1
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, 0x200, 0x200, 0x1000)
    return header + segment + names + symbols + sections


def parser_seeds(parser):
    seeds = {}
    if parser == "vectors":
        lines = vectors()
        seeds = {name: f"{lines[vector]}\n".encode() for name, vector in VECTORS.items()}
    for name, text in texts("fuzz/parsers/seeds.txt").items():
        of, name = name.split()
        if of != parser:
            continue
        if parser.endswith("_options"):
            text = text.replace(" ", "\n").replace("\\0", "\0")
        elif parser not in ("litmus", "live_values", "event_name"):
            text += "\n"
        seeds[name] = text.encode()
    return seeds


def seeds_of(target):
    generators = {
        "hostile_ring": lambda: SOUND | HOSTILE,
        "merge": merge_seeds,
        "planted_fault": lambda: {name: SOUND[name] for name in PLANTED_FAULT},
        "kernel_script": scripts,
        "two_consumers": lambda: scripts(undamaged_ring),
        "record": record_seeds,
        "parsers/elf": lambda: {"symbol": elf()},
        "parsers/perf_data": lambda: {"file": perf_data(), "pipe": perf_data(piped=True)},
    }
    if target in generators:
        return generators[target]()
    return parser_seeds(target.removeprefix("parsers/")) if target.startswith("parsers/") else {}


def main():
    target, folder = sys.argv[1:]
    try:
        seeds = seeds_of(target)
    except ValueError as error:
        sys.exit(f"fuzz/seeds.py: {error}")
    if not seeds:
        sys.exit(f"fuzz/seeds.py: there are no seeds of {target}")
    for name, data in seeds.items():
        pathlib.Path(folder, name).write_bytes(data)


if __name__ == "__main__":
    main()
