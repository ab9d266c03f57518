"""Other people's consumers, as packaged by Debian, in harness/conformance.

Writes the matrix of subjects and cases, and its picture, to ci-results/conform, and fails if it
differs from the one that is checked in (harness/conformance/RESULTS.md). Installs what is missing:
ci/setup conform.
Exit codes: 0 as checked in, 1 other than that, 2 usage or environment; with --subject, as perfring
conform's of it: 0 right, 1 wrong, 3 nothing shown.
"""
import argparse
import re
import shutil
import sys

from jobs import cases, conform_subjects, processes, usage
from jobs.checkout import ROOT
from jobs.conform_subjects import FOREIGN, PEERS, PERFRING

CHECKED_IN = ROOT / "harness/conformance/RESULTS.md"
PICTURE = ROOT / "docs/consumers.svg"  # of CHECKED_IN
TABLE = ROOT / "harness/conformance/table.py"
PROGRAMS = ("bpftool", "bpftrace", "perf", "go", "i686-linux-gnu-gcc", "i686-linux-gnu-g++")
SHOWN = (0, 1, 3)  # exit codes: a case that a subject fails, or that shows nothing, is a result
OWN = ""  # the version of a --subject


def are_there():
    """Whether the packages of the subjects are installed."""
    path = conform_subjects.with_sbin()
    return (FOREIGN / "usr/lib/i386-linux-gnu/libbpf.a").exists() and all(
        shutil.which(program, path=path) for program in PROGRAMS
    )


def require_all():
    if not are_there():
        set_up = processes.run(["ci/setup", "conform"])
        if set_up.returncode != 0 or not are_there():
            raise usage.Unusable("ci/setup conform installed not all of them")


class Matrix:
    """The results of the subjects, in a folder."""

    def __init__(self, folder, live):
        self.folder = folder
        self.live = live
        self.own_status = 0

    def run(self, name, version, options):
        """Runs the cases on one subject. In the JUnit report, failures that are checked in pass,
        and other failures fail."""
        print(f"ci/run conform: {name}")
        known = self.folder / "known"
        lines = processes.output([sys.executable, TABLE, "--known", CHECKED_IN, name])
        known.write_text(lines, encoding="utf-8")
        reports = ["--junit", self.folder / f"{name}.xml", "--known", known]
        status = self.show(self.folder / f"{name}.json", name, "", [*reports, *options])
        if version == OWN and self.own_status != 1 and status != 0:
            self.own_status = status
        # The ring of perf trace's event also has side-band records of the machine's own processes.
        if self.live and name != "perf-trace":
            live = self.folder / f"{name}.live.json"
            self.show(live, name, " on this kernel", ["--live", *options])
        words = [f"'{word}'" if re.search(r"\s", word) else word for word in map(str, options)]
        with open(self.folder / "subjects", "a", encoding="utf-8") as subjects:
            subjects.write(f"{name}\t{version}\t{' '.join(words)}\n")

    def show(self, path, name, where, arguments):
        """Runs the suite once, with its output in a file. Returns its exit code."""
        with open(path, "w", encoding="utf-8") as file:
            ended = processes.run([PERFRING, "conform", "--json", *arguments], stdout=file)
        if ended.returncode not in SHOWN:
            raise usage.Unusable(f"{name} cannot be run{where}")
        return ended.returncode

    def compare(self):
        """Writes the matrix, and compares it with what is checked in. Returns the exit code."""
        return processes.exit_code(processes.run([sys.executable, TABLE, self.folder, CHECKED_IN]))

    def write(self):
        if processes.run([sys.executable, TABLE, self.folder]).returncode != 0:
            raise usage.Unusable("harness/conformance/table.py has failed: see above")


def subject(text):
    """Reads NAME=COMMAND, for argparse."""
    name, equals, command = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: give NAME=COMMAND")
    return name, command.split()


def parse(arguments):
    parser = usage.Parser("conform", __doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="what it does without options: 1 if the matrix is other than what is checked in",
    )
    parser.add_argument(
        "--peer",
        metavar="NAME",
        action="append",
        default=[],
        choices=PEERS,
        help=f"only this one, of {', '.join(PEERS)}; repeatable",
    )
    parser.add_argument(
        "--subject",
        metavar="NAME=COMMAND",
        type=subject,
        action="append",
        default=[],
        help="one more, which prints lines (docs/conformance.md); the matrix is then not "
        "compared. {pages}, {wakeup_events}, {wakeup_watermark}, {sample_type} and {sample_id_all} "
        "in COMMAND stand for what the case asks for. With --peer, that peer is the only other "
        "column. Repeatable",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="on this machine's own kernel, too (as root): the matrix's last section",
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="the matrix takes the place of what is checked in, and its picture that of "
        "docs/consumers.svg",
    )
    options = parser.parse_args(arguments)
    if options.update and options.peer:
        parser.error("--update takes all of them: leave out --peer")
    return options


def main(arguments):
    options = parse(arguments)
    require_all()
    results = cases.RESULTS / "conform"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    conform_subjects.build(results)
    matrix = Matrix(results, options.live)
    for name in PEERS:
        if name in options.peer or not options.peer:
            matrix.run(name, *conform_subjects.subject(name, results))
    for name, command in options.subject:
        matrix.run(name, OWN, ["--", *command])
    if options.subject or options.update:
        matrix.write()
        status = matrix.own_status
        if options.update:
            shutil.copyfile(results / "results.md", CHECKED_IN)
            shutil.copyfile(results / "results.svg", PICTURE)
    else:
        status = matrix.compare()
    print(f"ci/run conform: {results}/results.md, results.svg, results.html")
    if status != 0 and not options.subject:
        name = CHECKED_IN.relative_to(ROOT)
        print(f"ci/run conform: other than {name}", file=sys.stderr)
    return status
