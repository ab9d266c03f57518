"""Speed, as ratios of medians within one run, against generous bounds.

Runs //harness/bench:drain, :merge, :records and :wait (--config=opt) until three consecutive runs
of each ratio agree within its bound. A ratio fails if no run is within. If some runs are, but fewer
than a third, the machine is too busy to tell, and the ratio is skipped. A drain that is twice as
slow fails; one that is a quarter slower does not. JUnit reports are kept in ci-results/bench/.
Exit codes: 0 within the bounds, 1 outside a bound, 2 usage or environment.
"""
import json
import statistics
import subprocess
import sys

from jobs import bazel, cases, processes, results, usage
from jobs.checkout import ROOT

# The benchmarks of harness/bench, and a bound for each ratio: the aim in harness/bench/README.md
# plus two thirds.
FIXED = {"perfring/LB-spec": ("at most", 1.7), "libbpf/PerfBuffer": ("at least", 2.6)}


def with_o2(bounds, at_o2=None):
    """Adds bounds for a build with plain -O2, as most users build: the bound of perfring/LB-spec, or
    `at_o2`. (Without -falign-loops, one of two equal loops of a sum may happen to be up to 1.4 times
    as fast.)"""
    bound = ("at most", at_o2) if at_o2 else bounds["perfring/LB-spec"]
    return {**bounds, "perfring -O2/LB-spec -O2": bound, "PerfBuffer -O2/LB-spec -O2": bound}


DRAIN = {
    "64K/8/count": FIXED,
    "64K/64/count": with_o2(FIXED),
    "64K/256/count": with_o2({**FIXED, "overloads/perfring": ("at most", 1.4)}),
    "64K/1024/count": {
        "perfring/LB-spec": ("at most", 1.9),
        "libbpf/PerfBuffer": ("at least", 2.2),
    },
    "64K/4096/count": {"perfring/LB-spec": ("at most", 3.4)},
    "64K/8|16/count": {"perfring/LB-ptr": ("at most", 1.8)},
    "8M/64/count": with_o2({"perfring/LB-spec": ("at most", 1.7)}),
    # Sums are at the floor now. The bound excludes their earlier times.
    "64K/256/sum": with_o2(
        {"perfring/LB-spec": ("at most", 1.35), "overloads/perfring": ("at most", 1.4)}, 1.9
    ),
    "512K/256/sum": with_o2({"perfring/LB-spec": ("at most", 1.4)}, 1.9),
    "8M/256/sum": with_o2({"perfring/LB-spec": ("at most", 1.4)}, 2.0),
    "8M/4096/sum": with_o2({"perfring/LB-spec": ("at most", 1.6)}, 1.8),
}
QUEUES = {
    "places/window 1": ("at least", 1.5),
    "places/window 8": ("at least", 1.2),
    "copies/window 1": ("at least", 7.2),
}
RANDOM = {"window 1/unmerged": ("at most", 13.3), "window 8/unmerged": ("at most", 16.7), **QUEUES}
RUNS = {"window 1/unmerged": ("at most", 5.8)}
MERGE = {
    "random/2": RANDOM,
    "random/8": RANDOM,
    # The merge needs a match on each of six levels, and misses the aim (harness/bench/RESULTS.md).
    "random/64": {
        **RANDOM,
        "window 1/unmerged": ("at most", 18),
        "window 8/unmerged": ("at most", 19),
    },
    **{f"runs/{rings}": RUNS for rings in (2, 8, 64)},
    # 7.2 to 7.6 on a quiet machine; the aim is 12.
    "random/256": {**QUEUES, "copies/window 1": ("at least", 5)},
}
HELD = {"RingSet p99/latency": ("at most", 2.0), "RingSet CPU %": ("at most", 6.7)}
WAIT = {
    "wait/1000": HELD,
    "wait/1000000": {
        **HELD,
        "libbpf/RingSet CPU": ("at least", 1.7),
        "libbpf/RingSet write": ("at least", 10),
    },
    # The only absolute figure: a tenth of the cost of a system call that asks about as many rings.
    "idle/256": {"heads ns": ("at most", 1000), "heads/plain": ("at most", 1.7)},
}


def chosen(lines):
    return "^(" + "|".join(line.replace("|", "[|]") for line in lines) + ")$"


# The bounds of "records" come from its aims; the other bounds come from measurements.
RECORDS = {
    "records": {"decoded/chase": ("at most", 5.0), "decoded/by hand": ("at most", 3.3)},
    **{
        line: {"decoded/by hand": ("at most", bound)}
        for line, bound in {
            "raw": 5.3,
            "callchain": 6.2,
            "read": 9,
            "lost": 5,
            "switch": 5,
            "fork": 5,
            "comm": 4.3,
            "mmap2": 7.3,
        }.items()
    },
}


PROGRAMS = {
    "drain": (DRAIN, [f"--benchmark_filter={chosen(DRAIN)}", "--benchmark_min_time=0.3"]),
    "merge": (MERGE, []),
    "records": (RECORDS, []),
    "wait": (WAIT, ["--rates", "1000", "1000000", "--seconds", "0.3"]),
}
BOUNDS = {line: bounds for lines, _ in PROGRAMS.values() for line, bounds in lines.items()}
AGREE = 1.15  # the largest of three runs divided by the smallest
NOT_SHOWN = 3


def is_live(line, ratio):
    """Whether the ratio measures the machine's kernel."""
    return "PerfBuffer" in ratio or line.startswith("wait/")


def ratios(folder):
    """Runs each benchmark once. Returns {line: {ratio: value}}."""
    values = {}
    for name, (_, arguments) in PROGRAMS.items():
        ended = processes.run([folder / name, "--json", "-", *arguments], stdout=subprocess.PIPE)
        # Without access to the machine's kernel, the other benchmarks still count.
        if ended.returncode != 0 and (name, ended.returncode) != ("wait", NOT_SHOWN):
            raise OSError(f"{name} ended with exit code {ended.returncode}")
        for each in json.loads(ended.stdout)["benchmarks"]:
            values[each["name"].partition("/iterations")[0]] = each
    return values


def settled(values):
    """Returns the median of the last three values if they agree, else None."""
    last = values[-3:]
    return statistics.median(last) if len(last) == 3 and max(last) <= AGREE * min(last) else None


def verdict(how, bound, values):
    """Returns the outcome and the value that decides it. Other load spoils some runs, and a single
    run may be good by luck: a ratio passes if it has settled within its bound, or if a third of its
    runs are within. It fails if none is."""
    within = [each for each in values if (each <= bound if how == "at most" else each >= bound)]
    value = settled(values)
    if value is not None and value in within:
        return "passed", value
    value = sorted(values, reverse=how == "at least")[len(values) // 3]
    if value in within:
        return "passed", value
    return ("skipped" if within else "failed"), value


def is_certain(how, bound, values):
    """Whether no more runs are needed: the ratio has settled within its bound."""
    return settled(values) is not None and verdict(how, bound, values)[0] == "passed"


def row(line, ratio, values):
    """Judges a ratio. Returns a test case, as the arguments of cases.add()."""
    how, bound = BOUNDS[line][ratio]
    name = f"{line} {ratio}"
    if not values:
        why = (
            "the machine's kernel is not available"
            if is_live(line, ratio)
            else "there is no such ratio"
        )
        return ("bench", name, "skipped" if is_live(line, ratio) else "failed", why)
    outcome, value = verdict(how, bound, values)
    shown = ", ".join(f"{each:.2f}" for each in values)
    busy = "the machine is too busy to tell: " if outcome == "skipped" else ""
    text = f"{busy}{value:.2f}, {how} {bound} ({shown})"
    print(f"bench: {name}: {text}{': FAILED' if outcome == 'failed' else ''}")
    return ("bench", name, outcome, text)


def measure(runs):
    """Runs the benchmarks until each ratio is certain, at most `runs` times. Returns the values of
    each ratio: {(line, ratio): list}."""
    values = {(line, ratio): [] for line in BOUNDS for ratio in BOUNDS[line]}
    for _ in range(runs):
        run = ratios(ROOT / "bazel-bin/harness/bench")
        for line, ratio in values:
            if ratio in run.get(line, {}):
                values[line, ratio].append(run[line][ratio])
        if all(
            not each or is_certain(*BOUNDS[line][ratio], each)
            for (line, ratio), each in values.items()
        ):
            break
    return values


def main(command_line):
    parser = usage.Parser("bench", __doc__)
    parser.add_argument(
        "--runs",
        type=int,
        choices=range(3, 31),
        metavar="N",
        default=8,
        help="at most, from 3 to 30 [8]",
    )
    arguments = parser.parse_args(command_line)
    usage.require("bazel")
    if not bazel.build("--config=opt", *(f"//harness/bench:{name}" for name in PROGRAMS)):
        return 2
    try:
        values = measure(arguments.runs)
    except ValueError as wrong:  # not JSON
        raise usage.Unusable(f"a benchmark prints what is not its report: {wrong}") from None
    except KeyboardInterrupt:
        print("ci/run bench: interrupted", file=sys.stderr)
        return 2
    rows = [row(line, ratio, each) for (line, ratio), each in values.items()]
    cases.write(cases.RESULTS / "bench" / "bench.xml", rows)
    return results.finish("bench")
