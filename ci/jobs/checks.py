"""Checks of a job that are not tests of Bazel's, each a test case in a report of its own."""
import subprocess
import tempfile

from jobs import cases, processes

SHOWN = 40  # lines of a failed check's log


class Failed(Exception):
    """A check does not hold. The message, if there is one, says why."""


class Log:
    """What a check's commands print. In the functions of a check, a command that fails ends it."""

    def __init__(self, file):
        self.file = file

    def run(self, *command, **options):
        """Runs a command in a process group of its own. Raises Failed if it fails."""
        streams = {"stdout": self.file, "stderr": subprocess.STDOUT}
        ended = processes.run(command, group=True, **{**streams, **options})
        if ended.returncode != 0:
            raise Failed(f"{command[0]} ended with exit code {processes.exit_code(ended)}")
        return ended

    def output(self, *command, **options):
        """Returns what a command prints. Raises Failed if it fails."""
        streams = {"stdout": subprocess.PIPE, "stderr": self.file}
        return self.run(*command, **streams, **options).stdout


def check(job, name, function, *arguments):
    """Calls a function with a Log and the arguments, and writes a test case: failed if the function
    raises Failed or OSError, with the end of the log. Returns whether it passed."""
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        try:
            function(Log(file), *arguments)
        except (Failed, OSError) as wrong:
            file.seek(0, 2)
            file.write(f"{wrong}\n")
            file.seek(0)
            end = "".join(file.readlines()[-SHOWN:]).rstrip("\n")
        else:
            cases.write_one(job, name, "passed")
            print(f"{job}: {name}")
            return True
    cases.write_one(job, name, "failed", end)
    print(f"{job}: FAILED {name}\n{end}")
    return False
