"""The table in harness/KERNEL_FACTS.md, from the reports of `ci/run foreign`.

It says which facts held on which kernel. A test shows the facts with which the comment directly
above it begins: `// K14, K15`, `// W8c: why`. For each fact and kernel the table has "yes" (all
tests of the fact that ran have passed), "no" (a test has failed), "skipped" (no test has run) or
"-" (no test is in the reports).
Exit codes: 0 the table is written, 2 usage or environment.
"""
import pathlib
import re
import xml.etree.ElementTree as ElementTree

from jobs import cases, usage
from jobs.checkout import ROOT

FACTS = ROOT / "harness/KERNEL_FACTS.md"
BEGIN, END = "<!-- ci/run kernel_facts: -->", "<!-- :ci/run kernel_facts -->"
FOLDERS = ("live", "differential", "foreign")  # of tests that guests run

FACT = r"[KRW]\d+[a-z]?"
SHOWS = re.compile(rf"// ({FACT}(?:, {FACT})*)\b")
COMMENTED = re.compile(r"^((?://.*\n)+)TEST(?:_F)?\((\w+),\s*(\w+)\)", re.MULTILINE)


def order(fact):
    letter, number, more = re.fullmatch(r"(\w)(\d+)(\w?)", fact).groups()
    return letter, int(number), more


def tests_of_facts():
    """Returns the titles of the tests that show each fact."""
    tests = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / "harness" / folder).rglob("*_test.cc")):
            for comment, suite, name in COMMENTED.findall(path.read_text(encoding="utf-8")):
                shown = SHOWS.match(comment)
                for fact in shown[1].split(", ") if shown else ():
                    tests.setdefault(fact, []).append(f"{suite}.{name}")
    return tests


class Guest:
    """A column of the table: the reports of a guest, of its quick tests and of others."""

    def __init__(self, name, kernel):
        self.name = name
        self.kernel = kernel
        self.outcomes = {}  # by title: a set, because a test may be in several reports

    def add(self, case):
        self.outcomes.setdefault(cases.title(case), set()).add(cases.outcome(case)[0])

    def says(self, titles):
        kinds = set().union(*(self.outcomes.get(title, set()) for title in titles))
        for kind, word in (("failed", "no"), ("passed", "yes"), ("skipped", "skipped")):
            if kind in kinds:
                return word
        return "-"

    def age(self):
        """Returns a sort key: older kernels come first."""
        return [int(number) for number in re.findall(r"\d+", self.kernel)[:3]], self.name


def guests(folder):
    """Returns the guests of the reports, by name."""
    found = {}
    for path in sorted(folder.glob("*.xml")):
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError:
            continue
        name = root.get("guest")
        if name is None:
            continue  # the guest did not get that far
        guest = found.setdefault(name, Guest(name, root.get("kernel")))
        for case in root.iter("testcase"):
            guest.add(case)
    return found


def table(columns):
    tests = tests_of_facts()
    rows = [{"fact": "kernel", **{each.name: each.kernel for each in columns}}]
    for fact in sorted(tests, key=order):
        rows.append({"fact": fact, **{each.name: each.says(tests[fact]) for each in columns}})
    return cases.table(["fact", *(each.name for each in columns)], rows)


def parse(command_line):
    parser = usage.Parser("kernel_facts", __doc__)
    parser.add_argument(
        "guests", metavar="GUEST", nargs="*", help="the columns [each guest that has a report]"
    )
    parser.add_argument(
        "--results",
        default=str(cases.RESULTS / "foreign"),
        metavar="FOLDER",
        help="of the reports [ci-results/foreign]",
    )
    arguments = parser.parse_args(command_line)
    found = guests(pathlib.Path(arguments.results))
    for name in arguments.guests:
        if name not in found:
            parser.error(
                f"'{name}' has no report in {arguments.results}: run ci/run foreign {name}"
            )
    if not found:
        parser.error(f"there is no guest's report in {arguments.results}: run ci/run foreign")
    return [found[name] for name in arguments.guests or found]


def main(command_line):
    columns = sorted(parse(command_line), key=Guest.age)
    text = FACTS.read_text(encoding="utf-8")
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise usage.Unusable(f"{FACTS} has not both of {BEGIN} and {END}")
    FACTS.write_text(f"{before}{BEGIN}\n{table(columns)}\n{END}{after}", encoding="utf-8")
    print(f"ci/run kernel_facts: {len(columns)} kernels in {FACTS.relative_to(ROOT)}")
    return 0
