"""`bazel test //...` in each configuration of .bazelrc: hours if nothing is built.

For riscv64 only //lib/... is built and tested. Continues after a failure, and ends with a table in
Markdown. JUnit reports are kept in ci-results/configs/NAME/.
Exit codes: 0 all passed, 1 something failed, 2 usage or environment.
"""
import sys
import time

from jobs import bazel, cases, machines, processes, results, usage

NATIVE = ("clang", "opt", "asan", "ubsan", "tsan", "fuzz", "coverage")
# These need ci/setup cross.
FOREIGN = tuple(machines.PROCESSORS)


def test(name, bazel_options):
    """Tests one configuration. Returns its row of the table."""
    started = time.monotonic()
    targets = [machines.PROCESSORS.get(name, {}).get("tests", "//...")]
    with bazel.events_file() as events:
        # Also build the targets that are not tests, which --config=foreign would leave out.
        flags = [f"--config={name}", "--nobuild_tests_only", *bazel_options]
        counts = results.keep(f"configs/{name}", bazel.test(flags, targets, events), events)
    return {"configuration": name, **counts, "seconds": round(time.monotonic() - started)}


def parse(command_line):
    names = (*NATIVE, *FOREIGN)
    parser = usage.Parser("configs", __doc__)
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"of {', '.join(names)} [all of them]"
    )
    usage.add_bazel(parser, "test")
    arguments = parser.parse_args(command_line)
    parser.check_names(arguments.names, names, "a configuration")
    arguments.names = list(dict.fromkeys(arguments.names)) or names
    return arguments


def main(command_line):
    arguments = parse(command_line)
    usage.require("bazel")
    rows = []
    try:
        for name in arguments.names:
            print(f"ci/run configs: {name}", flush=True)
            rows.append(test(name, arguments.bazel))
    except (KeyboardInterrupt, processes.Terminated):
        print("ci/run configs: interrupted", file=sys.stderr)
    print(cases.table(["configuration", *cases.KINDS, "seconds"], rows))
    counts = cases.total(rows)
    print(f"configs: {cases.line(counts)}")
    return 1 if counts["failed"] or len(rows) != len(arguments.names) else 0
