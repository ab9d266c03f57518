"""What the tests of ci/run share: a copy of ci/ in a folder of its own, and stand-ins for programs.
The tests run in the workspace's folder."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

WORKSPACE = pathlib.Path.cwd()
sys.dont_write_bytecode = True
sys.path.insert(0, str(WORKSPACE / "ci"))  # for `import jobs`


class Case(unittest.TestCase):
    """A test with a copy of ci/ in self.folder."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        for name in ("ci", ".ci"):
            if (WORKSPACE / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(WORKSPACE / name, self.folder / name, ignore=ignored)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.environment = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "FOLDER": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        for name in ("CI", "PERFRING_RESULTS"):
            self.environment.pop(name, None)

    def write(self, name, text, executable=False):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if executable:
            path.chmod(0o755)
        return path

    def read(self, name):
        return (self.folder / name).read_text(encoding="utf-8", errors="replace")

    def program(self, name, text):
        """Makes a stand-in for a program."""
        return self.write(f"bin/{name}", text, executable=True)

    def only_python(self):
        """Leaves no program but Python in PATH."""
        shutil.rmtree(self.bin)
        self.bin.mkdir()
        (self.bin / "python3").symlink_to(sys.executable)
        self.environment["PATH"] = str(self.bin)

    def run_command(self, *command, **environment):
        """Runs a command in the folder. Returns its exit code, stdout and stderr."""
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        return ended.returncode, ended.stdout, ended.stderr

    def expect(self, status, last, *command, **environment):
        """Checks the exit code, and that the last line matches. Returns all output."""
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.assertEqual(ended.returncode, status, f"{command}: {ended.stdout}")
        line = ended.stdout.rstrip("\n").rpartition("\n")[2]
        self.assertRegex(line, last, f"{command}: the last line of: {ended.stdout}")
        return ended.stdout

    def assert_line(self, text, regex):
        """Checks that a line of the text matches."""
        self.assertTrue(re.search(regex, text, re.MULTILINE), f"no line /{regex}/ in: {text}")

    def wait_for(self, name):
        """Waits up to a minute until a file exists."""
        for _ in range(600):
            if (self.folder / name).exists():
                return
            time.sleep(0.1)
        self.fail(f"not within a minute: {name}")


@contextlib.contextmanager
def results_in(folder):
    """Within this context, the reports of jobs that the test calls are in a folder."""
    from jobs import cases

    before = cases.RESULTS
    cases.RESULTS = pathlib.Path(folder)
    try:
        yield
    finally:
        cases.RESULTS = before


def answer(arguments, usage):
    """Answers --help, and refuses other arguments."""
    if arguments in (["-h"], ["--help"]):
        print(usage)
        sys.exit(0)
    if arguments:
        print(f"unknown argument '{' '.join(arguments)}'; {usage}", file=sys.stderr)
        sys.exit(2)
