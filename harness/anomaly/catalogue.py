"""Reads the tables: flows.json, what to run, and errnos.txt, what to make fail."""
import collections
import errno
import json
import os
import pathlib
import re

HERE = pathlib.Path(__file__).parent
TRANSFERS = ("read", "write", "pread64", "pwrite64")

Call = collections.namedtuple("Call", "name errnos words why_not")
# One thing that fails in one run of a flow. `what` is an errno's name, or the size of a short
# transfer ("one", "half"), or for the call `cut` the file's new size ("half", "empty"). `nth`:
# which call of its kind.
Injection = collections.namedtuple("Injection", "flow call what nth")


class Flow:
    def __init__(self, json):
        self.name, self.words, self.codes = json["name"], json["command"], json["codes"]
        self.files, self.writes = json.get("files", {}), json.get("writes", [])
        self.makes, self.then = json.get("makes", []), json.get("then")
        self.same, self.root = json.get("same", False), json.get("root", False)
        self.planted = json.get("planted")
        self.has_calls = json.get("calls", True)
        self.spares = json.get("spares", [])
        self.is_of_library = self.words.startswith("{flows}")


def read_flows():
    return [Flow(each) for each in json.loads((HERE / "flows.json").read_text())["flows"]]


def read_calls():
    """Returns the calls by name. A call that is not made to fail has no errnos, but a reason."""
    calls = {}
    for line in (HERE / "errnos.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, errnos, rest = (part.strip() for part in line.split("|"))
        is_left_out = errnos == "none"
        calls[name] = Call(
            name,
            [] if is_left_out else errnos.split(),
            [] if is_left_out else re.split(", ", rest),
            rest if is_left_out else None,
        )
    return calls


def read_known():
    """Returns the known findings that stay: (flow, call, beginning of the finding)."""
    lines = (HERE / "known.txt").read_text().splitlines()
    return [
        tuple(part.strip() for part in line.split("|"))[:3]
        for line in lines
        if line and not line.startswith("#")
    ]


def whats(call):
    """Returns everything that a call can be made to do."""
    return call.errnos + (["one", "half"] if call.name in TRANSFERS else [])


def error_of(what):
    """Returns the text of an errno's name, or None if `what` does not name one."""
    number = getattr(errno, what, None)
    return None if number is None else os.strerror(number)


def job_of(injection, flow, paths, seconds):
    """Returns the job for the room; without an injection, a job that counts calls."""

    def path_of(words):
        for name, path in paths.items():
            words = words.replace("{" + name + "}", str(path))
        return words

    job = {
        "command": path_of(flow.words).split(" "),
        "marks": flow.is_of_library,
        "seconds": seconds,
        "files": {},
    }
    for name, source in flow.files.items():
        is_of_tree = not source.startswith(("text:", "{"))
        job["files"][name] = f"{paths['tree']}/{source}" if is_of_tree else path_of(source)
    if flow.then:
        job["then"] = path_of(flow.then).split(" ")
    if injection is None:
        return job
    job |= {"call": injection.call, "nth": injection.nth, "preload": str(paths["preload"])}
    if injection.call == "cut":
        job["action"] = {"half": "cut", "empty": "empty"}[injection.what]
    elif injection.call != "malloc":
        is_short = injection.what in ("one", "half")
        job["action"] = injection.what if is_short else "error"
        job["errno"] = 0 if is_short else getattr(errno, injection.what)
    return job
