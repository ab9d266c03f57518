"""clang-format, shfmt, shellcheck and black; --fix rewrites the files.

All are as Debian 12 has them. Exit codes: 0 nothing to change, 1 something, 2 usage or environment.
"""
import pathlib
import sys

from jobs import cases, checkout, processes, usage
from jobs.checkout import ROOT

CXX = (".h", ".cc", ".c")
# {tool: (kind of its files, its command, its options to check and to rewrite)}
TOOLS = {
    "clang-format": ("cxx", ["clang-format-19"], ["--dry-run", "-Werror"], ["-i"]),
    "shfmt": ("shell", ["shfmt", "-i", "2", "-ci"], ["-d"], ["-w"]),
    "shellcheck": ("shell", ["shellcheck", "-x", "-S", "warning"], [], []),
    "black": ("python", ["black", "-q", "-l", "100"], ["--check", "--diff"], []),
}


def kind_of(name):
    """Returns the kind of a file, by its name or by its first line; None if no tool has it."""
    suffix = pathlib.PurePath(name).suffix
    if suffix in CXX:
        return "cxx"
    if suffix in (".sh", ".py"):
        return {".sh": "shell", ".py": "python"}[suffix]
    with open(ROOT / name, "rb") as file:
        first = file.readline(200).rstrip(b"\n")
    if first.startswith(b"#!") and first.endswith(b"sh"):
        return "shell"
    return "python" if first.startswith(b"#!") and first.endswith(b"python3") else None


def holds(command, files):
    """Returns whether a tool is content with the files."""
    if not files:
        return False
    try:
        return processes.run([*command, *files]).returncode == 0
    except FileNotFoundError:
        print(f"format: {command[0]} is not installed: run ci/setup format", file=sys.stderr)
        return False


def main(arguments):
    parser = usage.Parser("format", __doc__)
    parser.add_argument("--fix", action="store_true", help="rewrite the files that differ")
    fix = parser.parse_args(arguments).fix
    files = {"cxx": [], "shell": [], "python": [], None: []}
    for name in checkout.files():
        files[kind_of(name)].append(name)
    differs = False
    for tool, (kind, command, to_check, to_rewrite) in TOOLS.items():
        content = holds([*command, *(to_rewrite if fix else to_check)], files[kind])
        differs = differs or not content
        text = "'ci/run format --fix' rewrites the files that differ"
        cases.write_one("format", tool, "passed" if content else "failed", text)
    if differs:
        print(
            "format: the files above differ; 'ci/run format --fix' rewrites them", file=sys.stderr
        )
    return 1 if differs else 0
