"""Tests on other processors, by qemu-user; --all: every test that can run there.

Runs `bazel test --config=ARCH`. Without ARCH, runs on the two that differ most from this processor:
32 bits, and the other byte order. Without --all, runs only the tests about words, byte order and
the ring. Ends with a table in Markdown. JUnit reports are kept in ci-results/cross/ARCH/.
Exit codes: 0 all passed, 1 something failed, 2 usage or environment.
"""
import sys
import time

from jobs import bazel, cases, machines, results, usage

# Those that have every library, and a cross compiler of their own.
ARCHITECTURES = [
    name
    for name, machine in machines.PROCESSORS.items()
    if "gnu" in machine and "tests" not in machine
]
CI_ARCHITECTURES = machines.CI
# The tests without --all.
TARGETS = (
    "//lib/...",
    "//harness/kernel/...",
    "//harness/oracle/...",
    "//harness/record/...",
    "//harness/script/...",
    "//harness/rig/...",
    "//harness/simulator/...",
    "//harness/differential/...",
)


def test(architecture, targets, bazel_options):
    """Tests one architecture. Returns its row of the table."""
    started = time.monotonic()
    job = f"cross/{architecture}"
    with bazel.events_file() as events:
        status = bazel.test([f"--config={architecture}", *bazel_options], targets, events)
        if status == bazel.BUILD_FAILED:
            print(
                f"cross: not all builds for {architecture};"
                " if a library (-l...) is missing: run ci/setup cross",
                file=sys.stderr,
            )
        counts = results.keep(job, status, events)
    return {"processor": architecture, **counts, "seconds": round(time.monotonic() - started)}


def parse(command_line):
    parser = usage.Parser("cross", __doc__)
    parser.add_argument(
        "architectures",
        metavar="ARCH",
        nargs="*",
        help=f"of {', '.join(ARCHITECTURES)} [{' '.join(CI_ARCHITECTURES)}]",
    )
    parser.add_argument(
        "--all", action="store_true", help=f"all tests, not only {' '.join(TARGETS)}"
    )
    usage.add_bazel(parser, "test")
    arguments = parser.parse_args(command_line)
    parser.check_names(arguments.architectures, ARCHITECTURES, "an architecture")
    return arguments


def main(command_line):
    arguments = parse(command_line)
    usage.require("bazel", "ci/setup cross")
    wanted = arguments.architectures or CI_ARCHITECTURES
    rows = []
    try:
        for name in wanted:
            print(f"ci/run cross: {name}", flush=True)
            rows.append(test(name, ["//..."] if arguments.all else TARGETS, arguments.bazel))
    except KeyboardInterrupt:
        print("ci/run cross: interrupted", file=sys.stderr)
    print(cases.table(["processor", *cases.KINDS, "seconds"], rows))
    counts = cases.total(rows)
    print(f"cross: {cases.line(counts)}")
    return 1 if counts["failed"] or len(rows) != len(wanted) else 0
