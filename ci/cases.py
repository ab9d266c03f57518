"""The test cases of a JUnit report, as GoogleTest and Bazel write it, how they are counted and shown."""

KINDS = ("passed", "failed", "skipped")


def outcome(case):
    """One of KINDS, and what the report says about it."""
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


def total(counts):
    """The sum of several counts, each a dictionary by KINDS."""
    counts = list(counts)
    return {kind: sum(each[kind] for each in counts) for kind in KINDS}


def line(counts):
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)


def table(columns, rows):
    """In Markdown; a value that a row lacks is a question mark."""
    lines = [columns, ["---"] * len(columns)]
    lines += [[str(row.get(column, "?")) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
