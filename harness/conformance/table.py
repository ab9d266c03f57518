"""The matrix of subjects and cases, from the JSON of `perfring conform`.

usage: table.py FOLDER, which has `subjects` (a name, a tab and a version on each line) and NAME.json,
and gets results.md and results.html
"""
import html
import json
import pathlib
import sys

COLOURS = {"right": "#8bc34a", "acceptable": "#cddc39", "not run": "#dddddd", "loses": "#ffb300",
           "garbage": "#fb8c00", "floods": "#f4511e", "hangs": "#e53935", "crashes": "#8e24aa",
           "out of bounds": "#4a148c"}

folder = pathlib.Path(sys.argv[1])
subjects = [line.split("\t") for line in (folder / "subjects").read_text().splitlines()]
runs = {name: json.loads((folder / f"{name}.json").read_text()) for name, _ in subjects}
cases = [(case["id"], case["reachable"]) for case in runs[subjects[0][0]]["cases"]]
cells = {(name, case["id"]): case for name in runs for case in runs[name]["cases"]}


def text(cell):
    names = ", ".join(cell.get("accepted", []))
    return f"({names})" if cell["outcome"] == "acceptable" else cell["outcome"]


def count(name, kind, outcomes):
    return sum(1 for case, reachable in cases
               if reachable == kind and cells[name, case]["outcome"] in outcomes)


good, bad = ("right", "acceptable"), tuple(COLOURS)[3:]
suite = runs[subjects[0][0]]["suite"]
lines = ["# Other people's consumers, held to the cases", "",
         f"Written by `ci/conform --update`: suite version {suite}, x86-64, each program as it is. "
         "In brackets: acceptable, by the name that README.md explains. `FINDINGS.md` says what "
         "follows.", "",
         "| | " + " | ".join(name for name, _ in subjects) + " |",
         "|---" * (len(subjects) + 1) + "|",
         "| version | " + " | ".join(version for _, version in subjects) + " |"]
for kind, title in ((True, "reachable"), (False, "hostile")):
    for outcomes, what in ((good, "right or acceptable"), (bad, "wrong")):
        lines.append(f"| {title}: {what} | " +
                     " | ".join(str(count(name, kind, outcomes)) for name, _ in subjects) + " |")
for kind, title in ((True, "Reachable: a real kernel does it"),
                    (False, "Hostile: only a broken or a foreign producer does it")):
    lines += ["", f"## {title}", "", "| case | " + " | ".join(name for name, _ in subjects) + " |",
              "|---" * (len(subjects) + 1) + "|"]
    lines += [f"| {case} | " + " | ".join(text(cells[name, case]) for name, _ in subjects) + " |"
              for case, reachable in cases if reachable == kind]
(folder / "results.md").write_text("\n".join(lines) + "\n")

rows = []
for case, reachable in cases:
    row = [f"<th>{html.escape(case)}</th>"]
    for name, _ in subjects:
        cell = cells[name, case]
        said = html.escape(f"{name}, {case}: {cell['outcome']} {cell['detail']}", quote=True)
        row.append(f'<td style="background:{COLOURS[cell["outcome"]]}" title="{said}"></td>')
    rows.append(f'<tr class="{"reachable" if reachable else "hostile"}">{"".join(row)}</tr>')
legend = " ".join(f'<span style="background:{colour};color:#fff">&nbsp;{name}&nbsp;</span>'
                  for name, colour in COLOURS.items())
head = "".join(f"<th>{html.escape(name)}<br>{html.escape(version)}</th>"
               for name, version in subjects)
(folder / "results.html").write_text(
    "<!doctype html><meta charset=utf-8><title>Conformance</title><style>"
    "body{font:12px monospace}td{width:9em;height:1em}th{text-align:left}.hostile th{color:#777}"
    f"</style><p>{legend}</p><table><tr><th></th>{head}</tr>{''.join(rows)}</table>\n")
