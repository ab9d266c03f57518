"""A fuzzing campaign with libFuzzer, 20 s for each target on average.

The programs have AddressSanitizer and UndefinedBehaviorSanitizer. Each target runs on a copy of its
corpus. A finding is minimized and printed with the command that replays it. The checkout does not
change: inputs that reach new code, and inputs that break something, are kept in
~/.cache/perfring/fuzz/ ($XDG_CACHE_HOME/perfring/fuzz/), where the next campaign uses them. With
--merge they go into fuzz/TARGET_corpus.zip, which is minimized, and into fuzz/TARGET_regressions/.
Ctrl-C ends the campaign and reports the results so far. The first run has to build the programs,
which takes about ten minutes on two processors.

Exit codes: 0 nothing was found (except the planted fault), 1 something was found, or the planted
fault was not, 2 usage or environment.
"""
import base64
import os
import pathlib
import sys
import tempfile
import threading
import time

from jobs import bazel, cases, processes, usage
from jobs.fuzz_target import (
    FUZZ,
    KEPT,
    PLANTED_FAULT,
    Target,
    TooLong,
    all_targets,
    log,
    weight_of,
)

# {name: path in fuzz/}. A folder's name means all targets in it, which share the time of one.
TARGETS = {path.name: path for path in all_targets()}
GROUPS = {
    str(folder): [name for name, path in TARGETS.items() if path.parent == folder]
    for folder in sorted({path.parent for path in TARGETS.values()} - {pathlib.Path()})
}
NAMES = sorted([name for name, path in TARGETS.items() if len(path.parts) == 1] + [*GROUPS])


def print_table(targets):
    rows = [
        ["target", "executions", "seconds", "per second", "edges", "features", "corpus", "found"]
    ] + [t.row() for t in targets if t.processes]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        log(
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            )
        )


class Progress:
    def __init__(self):
        self.terminal = sys.stderr.isatty()
        self.next = time.monotonic() + (1 if self.terminal else 10)

    def show(self, running):
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + (1 if self.terminal else 30)
        line = "; ".join(
            f"{p.target.name}: {p.executions:,} executions, "
            f"{p.executions / (time.monotonic() - p.began):,.0f}/s, {p.coverage} edges, "
            f"corpus of {p.corpus}"
            for p in running
        )
        print(
            f"\r\x1b[K{line[:200]}" if self.terminal else line,
            flush=True,
            file=sys.stderr,
            end="" if self.terminal else "\n",
        )

    def clear(self):
        if self.terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def shares(names, seconds):
    """Returns the seconds for each target, by the weights in fuzz/options.ini."""
    weights = {
        each: weight_of(TARGETS[each])
        for name in dict.fromkeys(names)
        for each in GROUPS.get(name, [name])
    }
    time_of_all = seconds * len(set(names))
    return {
        each: max(1, time_of_all * weight // sum(weights.values()))
        for each, weight in weights.items()
    }


def campaign(targets, seconds, jobs, stop):
    """Runs all targets, `jobs` processes at once, until they end or `stop` is set."""
    waiting = [t for t in targets for _ in range(max(1, jobs // len(targets)))]
    running, progress = [], Progress()
    while (waiting or running) and not stop.is_set():
        while waiting and len(running) < jobs:
            target = waiting.pop(0)
            running.append(target.start(seconds[target.name]))
        running = [p for p in running if not p.is_over()]
        progress.show(running)
        stop.wait(0.2)
    for process in running:
        process.end()
    progress.clear()


def build(names):
    targets = [f"fuzz/{TARGETS[name]}_{part}" for name in names for part in ("bin", "seeds")]
    log(f"ci/run fuzz: building {', '.join(names)}")
    try:
        return bazel.build("--config=fuzz", *targets)
    except (KeyboardInterrupt, processes.Terminated):
        return False


def parse(command_line):
    parser = usage.Parser("fuzz", __doc__)
    parser.add_argument(
        "targets",
        metavar="TARGET",
        nargs="*",
        help=f"of {', '.join(NAMES)} [all of them]; "
        + "; ".join(
            f"{group}: one of {', '.join(names)}, or all" for group, names in GROUPS.items()
        ),
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=usage.number,
        default=20,
        help="how long each target that is named is run, on average [20]: what is "
        "hostile is run for longer (weight, in fuzz/options.ini); "
        + "".join(f"the {group} count as one" for group in GROUPS),
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=usage.number,
        default=os.cpu_count(),
        help="processes at once; where they are more than the targets, several "
        f"share one [{os.cpu_count()}, this machine's processors]",
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="change the checkout: fuzz/TARGET_corpus.zip becomes the smallest corpus "
        "that covers all that it, the kept and the new inputs cover. A target "
        "without one gets one only if it is named",
    )
    arguments = parser.parse_args(command_line)
    parser.check_names(arguments.targets, TARGETS | GROUPS, "a target")
    return arguments


def report(targets, wrong):
    """Writes the JUnit report."""

    def row(target):
        found = "\n".join(
            f"{each}, in base64: {base64.b64encode(each.read_bytes()).decode()}"
            for each in target.found
            if isinstance(each, pathlib.Path)
        )
        return (
            "fuzz",
            target.name,
            "failed" if target in wrong else "passed",
            found or ("it ended badly" if target.found else "its bug was not found"),
        )

    cases.write(cases.RESULTS / "fuzz" / "fuzz.xml", map(row, targets))


def say_what_is_kept(targets):
    counts = {target.name: target.keep() for target in targets}
    if any(counts.values()):
        log(
            f"Inputs that reach more than the corpora in fuzz/, which are as they were: "
            f"{', '.join(f'{count} of {name}' for name, count in counts.items() if count)}, "
            f"in {KEPT}\n"
            "To merge them into fuzz/*_corpus.zip: ci/run fuzz --merge"
        )


def merge(targets, named, stop):
    """Merges what the targets reached into their corpora, or keeps it."""
    for target in targets:
        wanted = target.checked_in("corpus.zip").exists() or target.name in named
        if wanted and target.name != PLANTED_FAULT and not stop.is_set():
            target.merge()
        else:
            target.keep()


def fuzz(arguments, seconds, stop):
    """Runs the campaign, and says what it found. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="perfring-fuzz-") as work:
        into = FUZZ if arguments.merge else KEPT
        try:
            targets = [Target(TARGETS[name], pathlib.Path(work), into) for name in seconds]
        except TooLong as wrong:
            print(f"ci/run fuzz: {wrong}", file=sys.stderr)
            return 1
        campaign(targets, seconds, arguments.jobs, stop)
        run = [t for t in targets if t.processes]
        for target in run:
            target.collect()
        merging = arguments.merge and not stop.is_set()
        if merging:
            merge(run, arguments.targets, stop)
        print_table(run)
        if not merging:
            say_what_is_kept(run)
    if stop.is_set():
        log("Stopped early: not everything was run and merged.")
    wrong = [t for t in run if not t.holds() and (t.found or not stop.is_set())]
    report(run, wrong)
    return 1 if wrong else 0


def main(command_line):
    arguments = parse(command_line)
    seconds = shares(arguments.targets or NAMES, arguments.seconds)
    try:
        KEPT.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise usage.Unusable(
            f"{KEPT}: {error.strerror}; set XDG_CACHE_HOME to a folder for what is new"
        ) from None
    usage.require("bazel")
    if not build(seconds):
        return 2
    stop = threading.Event()
    with processes.calling(stop.set):
        return fuzz(arguments, seconds, stop)
