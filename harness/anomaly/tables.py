"""Writes INJECTIONS.md: how often each call was made to fail in each flow."""
import os
import pathlib

import catalogue

HEAD = """# How often each call was made to fail in each flow

Written by `bazel run //harness/anomaly:campaign -- --all --update`: rows are calls, columns flows.

"""


def table(title, names, counts):
    """Returns a table with one row per call and one column per flow."""
    calls = sorted({call for flow, call in counts if flow in names})
    rows = [f"| {title} | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for call in calls:
        cells = [str(counts.get((name, call), "")) for name in names]
        rows.append(f"| {call} | {' | '.join(cells)} |")
    sums = [
        str(sum(count for (flow, _), count in counts.items() if flow == name)) for name in names
    ]
    rows.append(f"| **all** | {' | '.join(sums)} |")
    return "\n".join(rows) + "\n"


def text_of(counts):
    flows = [flow for flow in catalogue.read_flows() if not flow.planted]
    of_library = [flow.name for flow in flows if flow.is_of_library]
    of_program = [flow.name for flow in flows if not flow.is_of_library]
    return (
        f"{sum(counts.values())} injections.\n\n"
        + table("library", of_library, counts)
        + "\n"
        + table("program", of_program, counts)
    )


def update(counts):
    path = pathlib.Path(
        os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "harness/anomaly/INJECTIONS.md"
    )
    path.write_text(HEAD + text_of(counts))
    print(f"{path} is written")
