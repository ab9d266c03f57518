#!/usr/bin/env python3
"""Writes the matrix of subjects and cases, from the JSON of `perfring conform`.

usage: table.py FOLDER [CHECKED_IN]: FOLDER has `subjects` (on each line a name, a version and the
options of `perfring conform` that run it, between tabs) and NAME.json, and gets results.md,
results.svg and results.html. If it has NAME.live.json too, from `perfring conform --live`,
results.md ends with a section on those runs. Ends with 1 and lists the differences if a cell
differs from CHECKED_IN, an earlier results.md.
       table.py --known CHECKED_IN NAME: prints the failures of a subject there, in the format of
`perfring conform --known`
       table.py --picture CHECKED_IN: prints the picture of it, which is docs/consumers.svg
"""
import html
import json
import pathlib
import platform
import sys

sys.dont_write_bytecode = True
from picture import LOOKS, WRONG, Picture, groups_of

HERE = pathlib.Path(__file__).parent
CASES = (HERE / "cases/cases.txt").read_text()


def cells_of(path):
    """Returns the cells of results.md by section, subject and case. `version` counts as a case, too."""
    all_cells, section, names = {}, "", []
    for line in pathlib.Path(path).read_text().splitlines():
        words = [word.strip(" *") for word in line.strip("|").split("|")]
        if line.startswith("## On the live kernel"):
            section = "live"
        elif not line.startswith("| "):
            continue
        elif words[0] in ("", "case"):
            names = words[1:]
        elif not words[0].startswith(("reachable:", "hostile:")):
            all_cells |= {(section, name, words[0]): word for name, word in zip(names, words[1:])}
    return all_cells


def picture_of(path):
    """Returns the picture of results.md."""
    text = pathlib.Path(path).read_text().split("\n## Hostile")[0]
    cells = {key[1:]: cell for key, cell in cells_of(path).items() if key[0] == ""}
    versions = {name: cell for (name, case), cell in cells.items() if case == "version"}
    outcomes = {
        key: "acceptable" if cell.startswith("(") else cell
        for key, cell in cells.items()
        if key[1] != "version"
    }
    cases = [(case, f"\n| {case} |" in text) for case in dict.fromkeys(key[1] for key in outcomes)]
    return Picture(versions, cases, outcomes, groups_of(CASES)).svg()


if sys.argv[1] == "--known":
    for (section, name, case), outcome in cells_of(sys.argv[2]).items():
        if section == "" and name == sys.argv[3] and outcome in WRONG:
            print(case, outcome)
    sys.exit()
if sys.argv[1] == "--picture":
    print(picture_of(sys.argv[2]), end="")
    sys.exit()
folder = pathlib.Path(sys.argv[1])
rows = [line.split("\t") for line in (folder / "subjects").read_text().splitlines()]
subjects = [(name, version) for name, version, _ in rows]
run_names = [name for name, _ in subjects]
options = {name: words for name, _, words in rows}
runs = {name: json.loads((folder / f"{name}.json").read_text()) for name, _ in subjects}
suite = runs[run_names[0]]["suite"]
cases = [(case["id"], case["reachable"]) for case in runs[subjects[0][0]]["cases"]]
cells = {(name, case["id"]): case for name in runs for case in runs[name]["cases"]}


def text(cell):
    names = ", ".join(cell.get("accepted", []))
    return f"({names})" if cell["outcome"] == "acceptable" else cell["outcome"]


def count(name, kind, outcomes):
    return sum(
        1
        for case, reachable in cases
        if reachable == kind and cells[name, case]["outcome"] in outcomes
    )


good = ("right", "acceptable")
lines = [
    "# Other people's consumers, held to the cases",
    "",
    f"Written by `ci/run conform --update`: suite version {suite}, x86-64, each program as it is. "
    "In brackets: acceptable, by the name that README.md explains. `FINDINGS.md` says what "
    "follows.",
    "",
    "| | " + " | ".join(name for name, _ in subjects) + " |",
    "|---" * (len(subjects) + 1) + "|",
    "| version | " + " | ".join(version for _, version in subjects) + " |",
]
for kind, title in ((True, "reachable"), (False, "hostile")):
    for outcomes, what in ((good, "right or acceptable"), (WRONG, "wrong")):
        lines.append(
            f"| {title}: {what} | "
            + " | ".join(str(count(name, kind, outcomes)) for name, _ in subjects)
            + " |"
        )
for kind, title in (
    (True, "Reachable: a real kernel does it"),
    (False, "Hostile: only a broken or a foreign producer does it"),
):
    lines += [
        "",
        f"## {title}",
        "",
        "| case | " + " | ".join(name for name, _ in subjects) + " |",
        "|---" * (len(subjects) + 1) + "|",
    ]
    lines += [
        f"| {case} | " + " | ".join(text(cells[name, case]) for name, _ in subjects) + " |"
        for case, reachable in cases
        if reachable == kind
    ]
lines += ["", "## Not run", ""]
names_by_reason = {}
for name, _ in subjects:
    reasons = {}
    for case, _ in cases:
        if cells[name, case]["outcome"] == "not run":
            reasons.setdefault(cells[name, case]["detail"], []).append(case)
    for why, which in reasons.items():
        names_by_reason.setdefault((why, ", ".join(which)), []).append(name)
lines += [
    f"- {', '.join(names)}: {why}: {which}" for (why, which), names in names_by_reason.items()
]


def live_cell(name, case):
    cell = live[name].get(case, {"outcome": "not run"})
    differs = (
        "not run" not in (both := (cell["outcome"], cells[name, case]["outcome"]))
        and both[0] != both[1]
    )
    return f"**{text(cell)}**" if differs else text(cell)


live = {
    name: {case["id"]: case for case in json.loads(file.read_text())["cases"]}
    for name, _ in subjects
    if (file := folder / f"{name}.live.json").exists()
}
if live:
    ran = [
        case for case, _ in cases if any(one[case]["outcome"] != "not run" for one in live.values())
    ]
    first = next(iter(live.values()))
    why = {}
    for case, reachable in cases:
        if reachable and case not in ran:
            why.setdefault(first[case]["detail"], []).append(case)
    kernel = ".".join(platform.release().split(".")[:2])
    lines += [
        "",
        f"## On the live kernel: Linux {kernel}",
        "",
        "The same cases, written by the machine's own kernel (`ci/run conform --live`). **Bold**: "
        "other than on the simulated kernel. The hostile cases, which no kernel writes, are not run; and of "
        "the reachable ones:",
        "",
    ]
    lines += [f"- {reason}: {', '.join(which)}" for reason, which in why.items()]
    lines += ["", "| case | " + " | ".join(live) + " |", "|---" * (len(live) + 1) + "|"]
    lines += [
        f"| {case} | " + " | ".join(live_cell(name, case) for name in live) + " |" for case in ran
    ]
(folder / "results.md").write_text("\n".join(lines) + "\n")
(folder / "results.svg").write_text(picture_of(folder / "results.md"))

vectors = {one["id"]: one for one in json.loads((HERE / "vectors/index.json").read_text())["cases"]}
# Blocks of cases.txt, each from `case ID` to the next.
scripts = {
    block.split()[0]: "case " + block.split("\n#")[0].rstrip()
    for block in ("\n" + CASES).split("\ncase ")[1:]
}


def expected(event):
    if "lost" in event:
        return f"LOST {event['lost']}"
    if "error" in event:
        return "an error"
    kind = "maybe" if "maybe" in event else "sample"
    return f"{kind} {event[kind]}" + (
        f" and {event['padding']} of padding" if event["padding"] else ""
    )


def style(cell):
    colour, ink, _, _ = LOOKS[cell["outcome"]]
    return f"background:{colour};color:{ink or '#000000'}"


def behind(case, kind):
    """Returns the page's details of a case: script, bytes, expected events, and each subject's result."""
    vector = vectors[case]
    turns = []
    for number, turn in enumerate(vector["turns"], 1):
        turns.append(f"turn {number}: data_head {turn['head']}")
        turns += [f"  at {at}: {data}" for at, data in turn["writes"]]
        turns += [f"  expected: {expected(event)}" for event in turn["expected"]] or [
            "  expected: nothing"
        ]
    turns.append("accepted: " + (", ".join(vector["accept"]) or "nothing else"))
    parts = [
        f'<details id="{case}"><summary>{case}: {html.escape(vector["title"])} '
        f'({kind}; {", ".join(vector["facts"])})</summary>',
        f"<pre>{html.escape(scripts[case])}</pre><pre>{html.escape(chr(10).join(turns))}</pre><table>",
    ]
    for name, _ in subjects:
        cell = cells[name, case]
        replay = f"perfring conform --only {case} {options[name]}" if name in options else ""
        parts.append(
            f'<tr><th>{html.escape(name)}</th><td style="{style(cell)}">'
            f'{html.escape(text(cell))}</td><td class=wide>{html.escape(cell["detail"])}'
            f'{html.escape("".join(chr(10) + "< " + each for each in cell.get("backtrace", [])))}<br>'
            f"<code>{html.escape(replay)}</code></td></tr>"
        )
    for name in live:
        cell = live[name].get(case, {"outcome": "not run", "detail": ""})
        parts.append(
            f"<tr><th>{html.escape(name)}, live</th>"
            f'<td style="{style(cell)}">{html.escape(text(cell))}</td>'
            f'<td class=wide>{html.escape(cell["detail"])}</td></tr>'
        )
    line = f"perfring inspect harness/conformance/vectors/index.json --case {case}"
    return "".join(parts) + f"</table><p><code>{line}</code></p></details>"


rows = []
sections = []
for case, reachable in cases:
    kind = "reachable" if reachable else "hostile"
    row = [f'<th><a href="#{case}">{html.escape(case)}</a></th>']
    for name, _ in subjects:
        cell = cells[name, case]
        tooltip = html.escape(f"{name}, {case}: {cell['outcome']} {cell['detail']}", quote=True)
        row.append(f'<td style="{style(cell)}" title="{tooltip}"></td>')
    rows.append(f'<tr class="{kind}">{"".join(row)}</tr>')
    sections.append(behind(case, kind))
legend = " ".join(
    f'<span style="{style({"outcome": name})}">&nbsp;{name}&nbsp;</span>' for name in LOOKS
)
head = "".join(
    f"<th>{html.escape(name)}<br>{html.escape(version)}</th>" for name, version in subjects
)
# A link to a case opens it.
script = (
    "addEventListener('hashchange',()=>{const of=document.getElementById(location.hash.slice(1));"
    "if(of)of.open=true})"
)
(folder / "results.html").write_text(
    "<!doctype html><meta charset=utf-8><title>Conformance</title><style>"
    "body{font:12px monospace}td{width:9em;height:1em}th{text-align:left}.hostile th{color:#777}"
    "a{color:inherit;text-decoration:none}td.wide{width:auto}pre{white-space:pre-wrap;"
    "overflow-wrap:anywhere}</style>"
    f"<p>Suite version {suite}, x86-64: each program as it is, on the simulated kernel.</p>"
    f"<p>{legend}</p><table><tr><th></th>{head}</tr>{''.join(rows)}</table>\n"
    f"{''.join(sections)}<script>{script}</script>\n"
)

if len(sys.argv) > 2:
    now, before = cells_of(folder / "results.md"), cells_of(sys.argv[2])
    different = [key for key in now if now[key] != before.get(key)]
    # A subject that was run in this section has every case there.
    run = {key[:2] for key in now}
    different += [key for key in before if key[:2] in run and key not in now]
    for section, name, case in different:
        key = (section, name, case)
        print(
            f"{name}, {case}{', live' if section else ''}: {now.get(key)}, and in {sys.argv[2]} {before.get(key)}"
        )
    sys.exit(1 if different else 0)
