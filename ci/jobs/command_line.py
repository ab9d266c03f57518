"""The command line of ci/run."""
import sys

from jobs import catalogue, processes, series

USAGE = "usage: ci/run [JOB...] | COMMAND [ARGUMENT...]"


def table(names):
    return "\n".join(f"  {name:<17} {catalogue.summary(name)}" for name in names)


def help_text():
    return f"""{USAGE}

Without an argument, or with names of jobs only: installs missing packages, and runs CI's jobs, or
those that are named, one after another. The last line sums up the test cases; the line before it
names the jobs that were NOT RUN, if any. Each job leaves its JUnit reports in ci-results/JOB/
($PERFRING_RESULTS/JOB/). Exit codes: 0 nothing failed, 1 something failed, 2 usage.

With a command and its arguments (ci/run COMMAND --help has them): runs it alone, and installs
nothing (conform and distro: what they lack). `ci/run JOB --` runs a job so, without arguments.

CI's jobs, in their order:
{table(catalogue.CI)}
jobs that are run only if named:
{table(catalogue.IF_NAMED)}
other commands:
{table(catalogue.OTHERS)}"""


def main(arguments):
    """Runs what the arguments name. Returns the exit code."""
    sys.stdout.reconfigure(line_buffering=True)  # in the order of the children's own lines
    processes.take_signals()
    first = arguments[0] if arguments else None
    try:
        if all(each in catalogue.JOBS for each in arguments):
            return series.run(arguments or catalogue.CI)
        if first in ("-h", "--help"):
            print(help_text())
            return 0
        if first in (*catalogue.JOBS, *catalogue.OTHERS):
            own = arguments[1:]
            return catalogue.run(first, [] if own == ["--"] else own)
    except KeyboardInterrupt:
        print("ci/run: interrupted", file=sys.stderr)
        return 130
    print(
        f"ci/run: there is no job '{first}'; {USAGE}\n"
        f"  JOB: of {' '.join(catalogue.CI)}, which are all run without an argument, and "
        f"{' '.join(catalogue.IF_NAMED)}\n"
        f"  COMMAND: a job, or of {' '.join(catalogue.OTHERS)}",
        file=sys.stderr,
    )
    return 2
