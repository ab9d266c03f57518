"""llvm-cov's table and report, of lib and harness/kernel.

Measures line and branch coverage by tests and by the fuzzers' corpora. Prints a table, and writes
an HTML report to coverage-report/ (or --html FOLDER). Fails if lib/perfring/ring has a line or a
branch that nothing runs and that EXCEPTIONS does not name.

Exit codes: 0 covered, 1 not covered, or a test failed, 2 usage or environment.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile

from jobs import processes, usage
from jobs.checkout import ROOT

SHOWN = re.compile(
    r"^(lib/perfring/(?!.*testing/)|harness/kernel/(?!kernel_testing)).*" r"(?<!_test)\.(h|cc)$"
)
COMPLETE = "lib/perfring/ring/"
TESTS = (
    "kind(cc_test, //lib/... + //harness/kernel/... + //harness/oracle/... + "
    "//harness/script/... + //proptests/... + //fuzz/...)"
)
# Each of these tests is a script that runs a program X_bin.
REPLAYS = "attr(tags, fuzz-test, //fuzz/...)"

# Lines of the ring that do not run here: (file, part of the first line, number of lines, reason).
EXCEPTIONS = [
    ("walk.h", "encode(perf_event_header header)", 3, "runs in the compiler only"),
    ("walk.h", "std::endian::native == std::endian::little", 1, "the other byte order's hosts"),
    ("drain.h", "&& guess_failed(at, size)", 1, "guess_failed() never says false"),
    ("hardware_memory.h", "low_word(const SharedPosition* field)", 5, "32-bit hosts"),
    (
        "callback.h",
        "if (f == nullptr) __builtin_trap();",
        1,
        "ring_for_each_test's processes that end here write no counts",
    ),
]


def bazel(*arguments):
    return processes.output(["bazel", *arguments]).split()


def own_path(path):
    """Returns a file's path in the workspace. Bazel compiles lib's headers under another path."""
    path = re.sub(r".*/_virtual_includes/[^/]+/", "lib/", path)
    return path.removeprefix("/proc/self/cwd/")


class File:
    """Counts how often each line and branch ran, summed over all instances of a template."""

    def __init__(self):
        self.lines = collections.Counter()
        self.branches = collections.Counter()

    def add(self, exported):
        for line, count in line_counts(exported["segments"]).items():
            self.lines[line] += count
        for begin, column, _, _, taken, not_taken, *_ in exported["branches"]:
            self.branches[begin, column, True] += taken
            self.branches[begin, column, False] += not_taken

    def share(self, counts):
        return sum(count > 0 for count in counts.values()), len(counts)


def line_counts(segments):
    """Returns the count of each line, by llvm-cov's rule: the largest count of the regions that
    begin on the line and of the region that reaches into it."""
    counts, wrapped = {}, None
    by_line = collections.defaultdict(list)
    for segment in segments:
        by_line[segment[0]].append(segment)
    last = max(by_line, default=0)
    for line in range(1, last + 1):
        here = by_line.get(line, [])
        begun = [s for s in here if s[3] and s[4] and not s[5]]  # entries of regions with a count
        mapped = (wrapped is not None and wrapped[3]) or begun
        skipped = here and not here[0][3] and here[0][4]
        if mapped and not skipped:
            counts[line] = max(
                [s[2] for s in begun] + ([wrapped[2]] if wrapped is not None and wrapped[3] else [])
            )
        if here:
            wrapped = here[-1]
    return counts


def run_tests(profiles):
    command = [
        "bazel",
        "test",
        "--config=coverage",
        "--keep_going",
        "--nocache_test_results",
        f"--test_env=LLVM_PROFILE_FILE={profiles}/%p-%m.profraw",
        *bazel("query", f"{TESTS} + {REPLAYS}"),
    ]
    return processes.run(command).returncode == 0


def merge(profiles):
    raw = pathlib.Path(profiles, "files")
    raw.write_text("\n".join(map(str, pathlib.Path(profiles).glob("*.profraw"))))
    merged = f"{profiles}/all.profdata"
    command = ["llvm-profdata-19", "merge", "-sparse", f"-input-files={raw}", "-o", merged]
    processes.run(command).check_returncode()
    return merged


def llvm_cov(command, profile, *arguments, **options):
    objects = []
    for label in bazel("query", TESTS) + [f"{test}_bin" for test in bazel("query", REPLAYS)]:
        objects += ["-object", "bazel-bin/" + label.removeprefix("//").replace(":", "/")]
    ended = processes.run(
        ["llvm-cov-19", command, f"-instr-profile={profile}", *objects[1:], *arguments], **options
    )
    ended.check_returncode()
    return ended.stdout


def uncovered(name, file):
    """Yields the lines and branches that nothing runs and no exception names."""
    text = (ROOT / name).read_text().splitlines()
    excepted = set()
    for of, piece, lines, _ in EXCEPTIONS:
        first = [i for i, line in enumerate(text, 1) if piece in line and name.endswith("/" + of)]
        excepted.update(i + j for i in first for j in range(lines))
        if name.endswith("/" + of) and len(first) != 1:
            yield f"{name}: EXCEPTIONS names {len(first)} lines by '{piece}', not one"
    missed = [(line, "is not run") for line, count in file.lines.items() if count == 0]
    missed += [
        (line, f"column {column}: never {way}")
        for (line, column, way), count in file.branches.items()
        if count == 0
    ]
    for line, what in sorted(missed):
        if line not in excepted:
            yield f"{name}:{line}: {what}: {text[line - 1].strip()}"


def table(files):
    row = "{:<46} {:>11} {:>7}  {:>11} {:>7}"
    print(row.format("file", "lines", "", "branches", ""))
    total = {"lib": [0] * 4, "harness/kernel": [0] * 4}
    for name in sorted(files):
        numbers = [*files[name].share(files[name].lines), *files[name].share(files[name].branches)]
        whole = total["lib" if name.startswith("lib/") else "harness/kernel"]
        whole[:] = map(sum, zip(whole, numbers))
        print(row.format(name, *cells(*numbers)))
    for name, numbers in total.items():
        print(row.format(f"all of {name}", *cells(*numbers)))


def cells(lines, all_lines, branches, all_branches):
    def percent(part, whole):
        return f"{100 * part / whole:.1f} %" if whole else "-"

    return (
        f"{lines}/{all_lines}",
        percent(lines, all_lines),
        f"{branches}/{all_branches}",
        percent(branches, all_branches),
    )


def measure(html):
    """Runs the tests and writes the report. Returns whether they passed, and the counts by file."""
    with tempfile.TemporaryDirectory(prefix="perfring-coverage-") as profiles:
        passed = run_tests(profiles)
        profile = merge(profiles)
        exported = json.loads(
            llvm_cov("export", profile, "-skip-functions", stdout=subprocess.PIPE)
        )
        files, shown = collections.defaultdict(File), []
        for file in exported["data"][0]["files"]:
            name = own_path(file["filename"])
            if SHOWN.match(name):
                files[name].add(file)
                shown.append(file["filename"])
        llvm_cov(
            "show",
            profile,
            "-format=html",
            "-show-branches=count",
            "-show-instantiations=false",
            f"-output-dir={html}",
            "-sources",
            *shown,
        )
    return passed, files


def main(command_line):
    parser = usage.Parser("coverage", __doc__)
    parser.add_argument(
        "--html",
        metavar="FOLDER",
        default=str(ROOT / "coverage-report"),
        help="where the report is written [coverage-report]",
    )
    html = os.path.abspath(parser.parse_args(command_line).html)
    passed, files = measure(html)
    table(files)
    missed = [
        line
        for name in sorted(files)
        if name.startswith(COMPLETE)
        for line in uncovered(name, files[name])
    ]
    for of, piece, _, why in EXCEPTIONS:
        print(f"excepted: {COMPLETE}{of}: {piece}: {why}")
    print(f"excepted: {COMPLETE}tsan_memory.h: all of it: it is in ThreadSanitizer's builds only")
    print("\n".join(missed) or f"{COMPLETE} is covered, but for what is excepted.")
    print(f"The report is {html}/index.html")
    return 0 if passed and not missed else 1
