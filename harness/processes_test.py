#!/usr/bin/env python3
"""Checks that only lib/perfring/os/process.cc creates, signals and waits for processes.

That file never signals an id that is not positive, or that may belong to another process by now.
(system(3) and popen(3) wait for their own children, so they are allowed anywhere.)
usage: processes_test.py FILE: a file of the checkout (links are followed); reads all C and C++
sources of the checkout
"""
import pathlib
import re
import sys

CALLS = (
    "fork vfork clone clone3 posix_spawn posix_spawnp daemon kill killpg tkill tgkill sigqueue "
    "wait3 wait4 waitpid waitid pidfd_open pidfd_send_signal"
).split()
OWNER = "lib/perfring/os/process.cc"
EXEMPT = {
    OWNER: "the owner itself",
    "harness/anomaly/planted_flows.cc": "faults that the anomalies find, X-1 itself among them",
    "harness/conformance/adapters/misbehaving.c": "a subject that is to leave processes behind",
}
NAMES = "|".join(CALLS)
CALL = re.compile(rf"(?P<before>[\w>.:-]*\s*)\b(?P<call>{NAMES})\s*\(")
ADDRESS = re.compile(rf"[&=(,]\s*::(?P<call>{NAMES})\b(?!\s*\()")
BY_NUMBER = re.compile(rf"\bsyscall\s*\(\s*(?P<call>(SYS_|__NR_)({NAMES}))\b")
COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])\'', re.S
)


def is_system_call(match):
    """Whether the match calls the system's function: not a member, and not a declaration."""
    before = match["before"].strip()
    if before.endswith("::"):
        return before == "::"
    if before.endswith(":"):
        return True  # after a label
    words = ("", "return", "else", "do", "throw", "co_return")
    return before in words  # preceded by a type, it is a declaration


def calls(text):
    """Yields the line number and the name of each call in C++ source text."""
    text = COMMENT_OR_TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    found = [match for match in CALL.finditer(text) if is_system_call(match)]
    found += [*ADDRESS.finditer(text), *BY_NUMBER.finditer(text)]
    for match in sorted(found, key=lambda match: match.start("call")):
        yield text.count("\n", 0, match.start("call")) + 1, match["call"]


def check_itself():
    """Checks that calls() finds exactly the calls in a sample."""
    found = [
        name
        for _, name in calls(
            """
        ::kill(-1, SIGKILL);  if (!fork()) return waitpid(-1, 0, 0);
        syscall(SYS_tgkill, 1, 2, 9); x = ::clone(f); kill (0, 9);
        // ::kill(1, 9)
        child.kill(); void kill() const; child->wait(); Process::fork(f); std::string s = "kill(1)";
        static Result<Process> fork(Body body); /* fork() */ posix_spawn(&pid);
        case 1: killpg(1, 9); throw kill(2, 9); std::raise(9); run(::vfork); f = &::tkill;
    """
        )
    ]
    assert found == [
        *["kill", "fork", "waitpid", "SYS_tgkill", "clone", "kill", "posix_spawn"],
        *["killpg", "kill", "vfork", "tkill"],
    ], found


def main():
    check_itself()
    root = pathlib.Path(sys.argv[1]).resolve().parent
    files = [
        file
        for folder in ("lib", "harness", "fuzz", "proptests", "ci")
        for ending in ("h", "cc", "c")
        for file in sorted((root / folder).rglob("*." + ending))
    ]
    wrong = 0
    for file in files:
        name = str(file.relative_to(root))
        found = list(calls(file.read_text(errors="replace")))
        if name == OWNER:
            assert {"fork", "kill", "waitid", "wait4"} <= {call for _, call in found}, found
        if name in EXEMPT:
            continue
        for line, call in found:
            wrong += 1
            print(
                f"{name}:{line}: {call}(): use os::Process, os::ProcessRef or os::Command ({OWNER})"
            )
    assert len(files) > 300, f"only {len(files)} sources below {root}"
    assert set(EXEMPT) <= {str(file.relative_to(root)) for file in files}, "an exempt file is gone"
    print(f"{len(files)} sources, {wrong} calls of their own")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
