"""Reads, writes, counts and prints test cases in JUnit reports like GoogleTest's and Bazel's."""
import os
import re
import xml.etree.ElementTree as ElementTree

from jobs.checkout import ROOT

KINDS = ("passed", "failed", "skipped")
# Each job leaves its reports in a folder of its name in here. Nothing else writes here.
RESULTS = ROOT / (os.environ.get("PERFRING_RESULTS") or "ci-results")


def outcome(case):
    """Returns one of KINDS, and the report's text about it."""
    for element, kind in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(element)
        if found is not None:
            # GoogleTest puts "file:line" first and the reason after it.
            text = found.get("message") or found.text or "no reason given"
            return kind, " ".join(text.split())
    if case.get("status") == "notrun" or case.get("result") == "suppressed":
        return "skipped", "switched off"
    return "passed", ""


def title(case):
    return f"{case.get('classname', '')}.{case.get('name', '')}".strip(".")


def read(path):
    """Returns the test cases of a report; None if the file is not XML, because a failing test may
    have printed characters that are not allowed in XML."""
    try:
        return list(ElementTree.parse(path).getroot().iter("testcase"))
    except (ElementTree.ParseError, OSError):
        return None


def add(suites, suite, name, kind, text=""):
    """Adds a test case, in a suite of its own."""
    # XML allows no control characters, but consoles are full of them.
    text = "".join(each for each in text if each.isprintable() or each == "\n")
    suite = ElementTree.SubElement(
        suites, "testsuite", name=suite, tests="1", failures=str(int(kind == "failed"))
    )
    case = ElementTree.SubElement(
        suite, "testcase", classname=suite.get("name"), name=name, status="run"
    )
    if kind != "passed":
        element = ElementTree.SubElement(
            case, "failure" if kind == "failed" else "skipped", message=text.partition("\n")[0]
        )
        element.text = text
    for count, more in (("tests", 1), ("failures", kind == "failed")):
        suites.set(count, str(int(suites.get(count, "0")) + int(more)))


def write(path, rows):
    """Writes a report of rows, each with the arguments of add()."""
    suites = ElementTree.Element("testsuites", name="AllTests")
    for row in rows:
        add(suites, *row)
    save(path, suites)


def write_one(job, name, kind, text=""):
    """Writes a report of one test case of a job."""
    write(RESULTS / job / f"{file_name(name)}.xml", [(job, name, kind, text)])


def save(path, suites):
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)


def file_name(text):
    """Returns the text reduced to characters that every file system and artifact store accepts."""
    return re.sub(r"[^\w.+=-]+", "_", text, flags=re.ASCII).strip("_")[:120]


def count(folder):
    """Returns the counts of all reports in a folder, by KINDS."""
    counts = dict.fromkeys(KINDS, 0)
    for path in sorted(folder.rglob("*.xml")):
        for case in read(path) or []:
            counts[outcome(case)[0]] += 1
    return counts


def total(counts):
    """Returns the sum of several counts, each a dictionary by KINDS."""
    counts = list(counts)
    return {kind: sum(each[kind] for each in counts) for kind in KINDS}


def line(counts):
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)


def table(columns, rows):
    """Returns a table in Markdown, with a question mark for a value that a row lacks."""
    lines = [columns, ["---"] * len(columns)]
    lines += [[str(row.get(column, "?")) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
