"""A check of the job package: another Bazel workspace uses this one as a repository."""
import os
import shutil
import subprocess

from jobs import checkout
from jobs.checkout import ROOT
from jobs.checks import Failed

CONSUMER = ROOT / "ci/packaging/consumer"
TARGETS = """cc_binary(name = "consumer", srcs = ["consumer.cc"], deps = ["@perfring"])
cc_binary(name = "lib_consumer", srcs = ["consumer.cc"], deps = ["@perfring//lib:perfring"])
"""
MODULE = f"""module(name = "consumer")
bazel_dep(name = "perfring")
local_path_override(module_name = 'perfring', path = '{ROOT}')
"""


def repositories():
    """Yields the declarations of this workspace's repositories, except the libraries, which only
    perfring uses."""
    found = []

    def declare(rule):
        def repository(name, path, **rest):
            if "build_file" not in rest:
                rest.update(name=name, path=os.path.join(ROOT, path))
                values = ", ".join(f"{key} = {value!r}" for key, value in rest.items())
                found.append(f"{rule}({values})")

        return repository

    rules = {rule: declare(rule) for rule in ("local_repository", "new_local_repository")}
    text = (ROOT / "WORKSPACE").read_text(encoding="utf-8")
    exec(text, {**rules, "workspace": lambda name: None})
    return found


def name_perfring(workspace):
    """Makes the other workspace name this one. For Bazel 4 in WORKSPACE, together with this one's
    repositories; for Bazel 7 in MODULE.bazel."""
    options = ROOT / ".bazelrc.debian"
    if options.exists():
        text = options.read_text(encoding="utf-8").replace("%workspace%", str(ROOT))
        (workspace / ".bazelrc").write_text(text, encoding="utf-8")
        (workspace / "MODULE.bazel").write_text(MODULE, encoding="utf-8")
        return
    lines = [f"local_repository(name = 'perfring', path = '{ROOT}')", *repositories()]
    (workspace / "WORKSPACE").write_text("\n".join(lines) + "\n", encoding="utf-8")


def consumer_works(log, program):
    """Runs a consumer of the library."""
    text = log.output(program)
    if not text.startswith(f"perfring {checkout.version()}") or "map fd -1" not in text:
        raise Failed(f"{program} prints: {text}")


def builds(log, folder, run):
    """Analyzes the consumers in the other workspace; with `run`, builds and runs them."""
    workspace = folder / "workspace"
    workspace.mkdir()
    for source in CONSUMER.glob("*.cc"):
        shutil.copy(source, workspace)
    name_perfring(workspace)
    (workspace / "BUILD.bazel").write_text(TARGETS, encoding="utf-8")
    bazel = ["bazel", f"--output_user_root={folder}/bazel"]
    where = {"cwd": workspace, "env": {**os.environ, "HOME": str(folder)}}
    flags = ["--spawn_strategy=processwrapper-sandbox,local", "--cxxopt=-std=c++2b"]
    try:
        log.run(*bazel, "build", *([] if run else ["--nobuild"]), *flags, "//...", **where)
    finally:
        subprocess.run([*bazel, "shutdown"], stdout=log.file, stderr=log.file, **where)
    if run:
        consumer_works(log, workspace / "bazel-bin/consumer")
        consumer_works(log, workspace / "bazel-bin/lib_consumer")
