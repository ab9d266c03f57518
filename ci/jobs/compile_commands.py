"""Writes compile_commands.json, for clangd and other tools.

Asks Bazel how each file is compiled (aquery) and compiles nothing. Generated files exist only after
a build; lib's headers are taken from lib, and not from the links to them that a build makes.
Exit codes: 0 written, 2 usage or environment.
"""
import json
import re
import subprocess

from jobs import processes, usage
from jobs.checkout import ROOT

SOURCES = (".cc", ".c")
LINKS = re.compile(r"-Ibazel-out/.*/bin/lib/.*_virtual_includes/.*")  # `perfring`, a part of lib


def entry_of(arguments, folder):
    """Returns an action's entry, if it compiles one of our sources."""
    source = next((each for each in arguments if each.endswith(SOURCES)), "")
    if source and (ROOT / source).exists():
        arguments = [LINKS.sub(f"-I{ROOT}/lib", each) for each in arguments]
        return {"directory": folder, "file": str(ROOT / source), "arguments": arguments}
    return None


def write(config):
    """Writes a configuration's commands. Returns the file's path, and the number of entries."""
    usage.require("bazel")
    query = ["aquery", f"--config={config}", "--output=jsonproto", 'mnemonic("CppCompile", //...)']
    actions = processes.run(["bazel", *query], stdout=subprocess.PIPE)
    if actions.returncode != 0:
        raise usage.Unusable("bazel aquery failed: see above")
    # The actions run in this folder, and the commands name its external/ and bazel-out/.
    folder = processes.output(["bazel", "info", "execution_root"]).strip()
    entries = {}
    for action in json.loads(actions.stdout)["actions"]:
        entry = entry_of(action["arguments"], folder)
        if entry:
            entries.setdefault(entry["file"], entry)  # one of them: -fPIC does not matter
    path = ROOT / "compile_commands.json"
    path.write_text(json.dumps(list(entries.values()), indent=1) + "\n", encoding="utf-8")
    return path, len(entries)


def main(command_line):
    parser = usage.Parser("compile_commands", __doc__)
    parser.add_argument(
        "--config",
        metavar="NAME",
        default="clang",
        help="a configuration of .bazelrc [clang, whose commands clangd-19 reads]",
    )
    path, count = write(parser.parse_args(command_line).config)
    print(f"{path.name}: {count} files")
    return 0
