"""The API reference, by Doxygen from lib's headers; a warning is an error.

Writes ci-results/docs/html/index.html. Exit codes: 0 no warning, 1 a warning, 2 usage or
environment.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from jobs import cases, checkout, processes, usage
from jobs.checkout import ROOT

HEADERS = ("lib/perfring/ring/ring.h", "lib/perfring/perf_buffer.h")
RULES = range(1, 12)
PAGES = ("index", "md_DIVERGENCES", "rules", "classperfring_1_1PerfBuffer")
CLASSES = "Ring RingSet Cursor ControlFlow Merge PerfBuffer PerfEventArray event_1_1Sampler".split()
PAGE_OF_RULES = """# The rules of a drain {{#rules}}

{}

![The ring: who writes what, and what orders it](ring.svg)

Each has tests: `lib/perfring/ring`.
"""
SHOWN = 40  # lines of the warnings, in the report


def rules():
    """Returns the rules S1 to S11 in the headers, by number: (number, text)."""
    found, rule = [], None
    for header in HEADERS:
        for line in (ROOT / header).read_text(encoding="utf-8").splitlines():
            if re.match(r"//   S\d+ ", line):
                found.append([line[5:]])
                rule = found[-1]
            elif rule and line.startswith("//       "):
                rule.append(line[9:])
            else:
                rule = None
    split = [re.fullmatch(r"S(\d+) +(.*)", " ".join(each)).groups() for each in found]
    return sorted((int(number), text) for number, text in split)


def wrong_with(of):
    """Returns a list with the reason if the headers do not state each rule once, as a sentence."""
    stated = [number for number, text in of if re.fullmatch(r"[a-zA-Z].*[.]", text)]
    if stated == list(RULES):
        return []
    return [
        "ring.h and perf_buffer.h state S1 to S11 each once; found, of them, as a sentence: "
        + " ".join(map(str, stated))
    ]


def doxygen(of, results):
    """Runs Doxygen. Returns its exit code, and what it warns of."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "rules.md"
        lines = "\n".join(f"- **S{number}** {text}" for number, text in of)
        page.write_text(PAGE_OF_RULES.format(lines), encoding="utf-8")
        settings = (
            f"{(ROOT / 'ci/packaging/Doxyfile').read_text(encoding='utf-8')}\n"
            f"PROJECT_NUMBER = {checkout.version()}\n"
            f"INPUT += {page}\n"
            f"OUTPUT_DIRECTORY = {results}\n"
        )
        ended = processes.run(["doxygen", "-"], text_input=settings, stderr=subprocess.PIPE)
    return ended.returncode, ended.stderr.splitlines()


def missing_pages(html):
    """Yields what the reference lacks."""
    for page in PAGES:
        path = html / f"{page}.html"
        if not path.exists() or path.stat().st_size == 0:
            yield f"no page {page}"
    for name in CLASSES:
        path = html / f"classperfring_1_1{name}.html"
        if not path.exists() or "Detailed Description" not in path.read_text(encoding="utf-8"):
            yield f"the page of {name} does not describe it"


def main(arguments):
    usage.Parser("docs", __doc__).parse_args(arguments)
    usage.require("doxygen", "ci/setup docs")
    results = cases.RESULTS / "docs"
    shutil.rmtree(results, ignore_errors=True)
    (results / "html").mkdir(parents=True)
    of = rules()
    status, warnings = 1, wrong_with(of)
    if not warnings:
        status, warnings = doxygen(of, results)
    missing = list(missing_pages(results / "html"))
    warnings += missing
    print("".join(f"{each}\n" for each in warnings), end="", file=sys.stderr)
    kind = "failed" if status != 0 or missing else "passed"  # Doxygen may print and be content
    cases.write_one("docs", "doxygen", kind, "\n".join(warnings[:SHOWN]))
    if kind == "failed":
        print("docs: Doxygen is not content with the lines above", file=sys.stderr)
        return 1
    print(f"docs: {results}/html/index.html")
    return 0
