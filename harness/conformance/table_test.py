#!/usr/bin/env python3
"""Tests table.py, without running a consumer: it takes the runs from RESULTS.md. Then compares
them with what else shows them: docs/consumers.svg, and a sentence of README.md.

usage: table_test.py, in the workspace's folder
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path("harness/conformance")
RESULTS = (HERE / "RESULTS.md").read_text()
PICTURE = pathlib.Path("docs/consumers.svg")
ORDER = re.findall(r"^case (\S+)", (HERE / "cases/cases.txt").read_text(), re.MULTILINE)


def sections():
    """Returns the lines of each section of RESULTS.md."""
    return [part.splitlines() for part in re.split(r"^## ", RESULTS, flags=re.MULTILINE)]


def rows(lines):
    """Yields the cells of each row of a section's table."""
    for line in lines:
        if line.startswith("| "):
            yield [cell.strip(" *") for cell in line.strip("|").split("|")]


def results_of(text, detail):
    """Returns what `perfring conform --json` says of a cell."""
    if text.startswith("("):
        return {"outcome": "acceptable", "accepted": text[1:-1].split(", "), "detail": detail}
    return {"outcome": text, "detail": detail}


class Runs:
    """The JSON of `perfring conform` for each subject, as RESULTS.md has its cells."""

    def __init__(self):
        head, reachable, hostile, not_run, live = sections()
        (_, *names), (_, *versions), *_ = rows(head)
        self.versions = dict(zip(names, versions))
        self.suite = int(re.search(r"suite version (\d+)", RESULTS)[1])
        why = {}
        for line in not_run:
            if line.startswith("- "):
                subjects, rest = line[2:].split(": ", 1)
                reason, cases = rest.rsplit(": ", 1)
                for name in subjects.split(", "):
                    why |= {(name, case): reason for case in cases.split(", ")}
        self.cases = {name: [] for name in names}
        for lines, is_reachable in ((reachable, True), (hostile, False)):
            for case, *cells in rows(lines):
                if case != "case":
                    for name, text in zip(names, cells):
                        result = results_of(text, why.get((name, case), ""))
                        self.cases[name].append({"id": case, "reachable": is_reachable} | result)
        for cases in self.cases.values():
            cases.sort(key=lambda case: ORDER.index(case["id"]))
        (_, *of_live), *cells = rows(live)
        ran = {(name, case): text for case, *rest in cells for name, text in zip(of_live, rest)}
        excuse = {
            case: line[2:].rsplit(": ", 1)[0]
            for line in live
            if line.startswith("- ")
            for case in line.rsplit(": ", 1)[1].split(", ")
        }
        self.live = {
            name: [
                {"id": case["id"], "reachable": case["reachable"]}
                | results_of(ran.get((name, case["id"]), "not run"), excuse.get(case["id"], ""))
                for case in self.cases[name]
            ]
            for name in of_live
        }

    def write(self, folder):
        lines = [f"{name}\t{version}\t-- {name}\n" for name, version in self.versions.items()]
        (folder / "subjects").write_text("".join(lines))
        for ending, runs in ((".json", self.cases), (".live.json", self.live)):
            for name, cases in runs.items():
                text = json.dumps({"suite": self.suite, "cases": cases})
                (folder / f"{name}{ending}").write_text(text)


class TableTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.runs = Runs()

    def table(self, *arguments):
        """Runs table.py. Returns its exit code, and what it prints."""
        command = [sys.executable, "-B", HERE / "table.py", *arguments]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        return ended.returncode, ended.stdout

    def test_writes_results_md_from_the_runs(self):
        self.runs.write(self.folder)
        self.assertEqual(self.table(self.folder, HERE / "RESULTS.md"), (0, ""))
        # The last section names the kernel of the machine that writes it.
        kernel = re.compile(r"(?<=^## On the live kernel: Linux ).*", re.MULTILINE)
        written = (self.folder / "results.md").read_text()
        self.assertEqual(kernel.sub("", written), kernel.sub("", RESULTS))

    def test_draws_the_picture_of_the_runs(self):
        self.runs.write(self.folder)
        self.table(self.folder)
        picture = (self.folder / "results.svg").read_text()
        command = f"{HERE}/table.py --picture {HERE}/RESULTS.md >{PICTURE}"
        self.assertTrue(picture == PICTURE.read_text(), f"{PICTURE} differs; write it: {command}")
        cells = [case["outcome"] for cases in self.runs.cases.values() for case in cases]
        for outcome in ("right", "acceptable", "not run", "loses", "garbage", "out of bounds"):
            drawn = picture.count(f'<use href="#{outcome.replace(" ", "-")}"')
            self.assertEqual(drawn, cells.count(outcome) + 1, f"{outcome}, once in the legend")

    def test_the_picture_has_what_results_md_counts(self):
        counts = {cells[0]: cells[1:] for cells in rows(sections()[0])}
        drawn = re.findall(r">(\d+)<tspan [^>]*>of (\d+)</tspan>", PICTURE.read_text())
        for kind in ("reachable", "hostile"):
            for good, wrong in zip(
                *(counts[f"{kind}: {of}"] for of in ("right or acceptable", "wrong"))
            ):
                self.assertEqual(drawn.pop(0), (wrong, str(int(good) + int(wrong))))
        self.assertEqual(drawn, [])

    def test_readme_md_has_the_count_of_libbpf(self):
        outcomes = [case["outcome"] for case in self.runs.cases["libbpf"] if case["reachable"]]
        wrong = sum(of not in ("right", "acceptable", "not run") for of in outcomes)
        sentence = f"libbpf 1.1 fails {wrong} cases that real kernels can produce"
        self.assertTrue(sentence in pathlib.Path("README.md").read_text(), f"not: {sentence}")

    def test_lists_each_cell_that_differs(self):
        self.runs.cases["bcc"][0]["outcome"] = "crashes"
        self.runs.write(self.folder)
        output = f"bcc, empty: crashes, and in {HERE}/RESULTS.md right\n"
        self.assertEqual(self.table(self.folder, HERE / "RESULTS.md"), (1, output))

    def test_lists_the_failures_that_are_known(self):
        status, output = self.table("--known", HERE / "RESULTS.md", "bcc")
        self.assertEqual((status, output.splitlines()[0]), (0, "oversize-overwrites floods"))
        self.assertEqual(len(output.splitlines()), 17)

    def test_results_html_has_each_cases_script(self):
        self.runs.write(self.folder)
        self.table(self.folder)
        page = (self.folder / "results.html").read_text()
        self.assertIn('<details id="size-max">', page)
        self.assertIn("<pre>case size-max 1 hostile\ntitle", page)
        self.assertIn("perfring conform --only size-max -- libbpf-i386", page)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["-v"]):
        sys.exit(__doc__)
    unittest.main()
