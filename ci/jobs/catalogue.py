"""The names of the jobs and of the other commands, and their modules."""
import importlib
import shlex
import subprocess
import sys
import traceback

from jobs import usage

# asan-ubsan and fuzz share a build, so they are neighbors.
CI = "format docs default tsan asan-ubsan fuzz bench package foreign cross".split()
IF_NAMED = "fleet conform".split()
JOBS = [*CI, *IF_NAMED]
OTHERS = (
    "configs nothing states distro coverage deb kernel_facts includes compile_commands test_job"
).split()


def module_of(name):
    return importlib.import_module(f"jobs.{name.replace('-', '_')}")


def summary(name):
    """Returns the first line of a command's docstring."""
    return module_of(name).__doc__.partition("\n")[0]


def run(name, arguments):
    """Runs a job or another command. Returns its exit code."""
    try:
        return module_of(name).main(arguments)
    except (usage.Unusable, OSError) as wrong:
        print(f"ci/run {name}: {wrong}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as wrong:
        command = shlex.join(map(str, wrong.cmd))
        print(f"ci/run {name}: {command} ended with exit code {wrong.returncode}", file=sys.stderr)
        return 2
    except Exception:  # the jobs after this one are run all the same
        traceback.print_exc()
        return 1
