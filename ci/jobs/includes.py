"""Whether each file includes what it uses; --fix.

Checks C++ files by clang-include-cleaner. What a source's own header includes (the one that it
includes first) it need not include again. Takes minutes, so it is not among CI's jobs.
Does not look for unused headers: the tool reports sys/epoll.h as unused where only EPOLLIN is used,
which is a macro with the name of an enumerator.
Exit codes: 0 nothing to change, 1 something, 2 usage or environment.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess

from jobs import checkout, compile_commands, usage
from jobs.checkout import ROOT

CLEANER = "clang-include-cleaner-19"
# Headers that are parts of others: of a library, or of the kernel's and libc's interfaces.
PARTS = ["asm/.*", "asm-generic/.*", "bits/.*", "boost/.*", "CLI/.*", "fmt/.*", "g[mt][a-z]*/.*"]
PARTS += ["nlohmann/.*", "rapidcheck/.*", "sys/poll.h", "sys/ucontext.h"]
INCLUDE = re.compile(r'^#include ([<"].*[>"])', re.M)


def sources():
    """Returns the files to check: all but BPF programs and their headers."""
    names = (name for name in checkout.files() if name.endswith((".cc", ".h")))
    return [ROOT / name for name in names if "bpf" not in name]


def own_header(file, text):
    """Returns the header that belongs to a source, which includes it first, or None."""
    first = INCLUDE.search(text)
    if file.suffix != ".cc" or not first:
        return None
    name = first[1].strip('"')
    return next((each for each in (ROOT / name, ROOT / "lib" / name) if each.is_file()), None)


def kind_of(header):
    """Returns the rank of the header's block: libc's and the kernel's, C++'s, the project's."""
    return 2 if header[0] == '"' else 0 if header.endswith(".h>") else 1


def with_header(header, text, has_own):
    """Returns the text with the header in its block, where clang-format sorts it."""
    present = [each for each in INCLUDE.finditer(text) if each[1] != "<version>"][has_own:]
    for each in present:
        if kind_of(each[1]) == kind_of(header):
            return text[: each.start()] + f"#include {header}\n" + text[each.start() :]
        if kind_of(each[1]) > kind_of(header):
            return text[: each.start()] + f"#include {header}\n\n" + text[each.start() :]
    last = [*INCLUDE.finditer(text)][-1:]
    at = text.index("\n", last[0].start()) + 1 if last else text.index("namespace")
    return text[:at] + f"\n#include {header}\n" + "\n" * (not last) + text[at:]


def lacking(file, fix):
    """Returns the headers that the file lacks, one a line; adds them if `fix`."""
    found = subprocess.run(
        [CLEANER, "-p", ROOT, "--print=changes", f"--ignore-headers={','.join(PARTS)}", file],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if found.returncode != 0:
        return f"{CLEANER} failed: {found.stderr}"
    text = file.read_text()
    own = own_header(file, text)
    included = INCLUDE.findall(own.read_text()) if own else []
    missing = [line[2:] for line in found.stdout.splitlines() if line[0] == "+"]
    missing = [header for header in missing if header not in included]
    for header in missing if fix else []:
        text = with_header(header, text, bool(own))
    if fix and missing:
        file.write_text(text)
    return "".join(f"+ {header}\n" for header in missing)


def main(command_line):
    parser = usage.Parser("includes", __doc__)
    parser.add_argument(
        "--fix", action="store_true", help="make the changes; then ci/run format --fix"
    )
    parser.add_argument("files", metavar="FILE", nargs="*", type=pathlib.Path, help="[all]")
    options = parser.parse_args(command_line)
    for file in options.files:
        if not file.is_file():
            parser.error(f"{file}: there is no such file")
    usage.require(CLEANER, "ci/setup includes")
    compile_commands.write("clang")
    files = [each.resolve() for each in options.files] or sources()
    differing = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, text in zip(files, pool.map(lambda each: lacking(each, options.fix), files)):
            if text:
                differing += 1
                print(f"{file.relative_to(ROOT)}\n{text}", end="", flush=True)
    print(f"{len(files)} files, {differing} differ")
    return 1 if differing and not options.fix else 0
