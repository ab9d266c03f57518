"""Runs Bazel, as jobs do."""
import contextlib
import os
import pathlib
import sys
import tempfile

from jobs import processes

# Fewer lines of progress in a log; CI's machine keeps its build results.
OPTIONS = ([] if sys.stderr.isatty() else ["--show_progress_rate_limit=30"]) + (
    ["--config=ci"] if os.environ.get("CI") else []
)
BUILD_FAILED = 1  # exit codes of Bazel's
REFUSED = 2  # the command line


@contextlib.contextmanager
def events_file():
    """Yields the path of an empty file for a build's events: Bazel writes none if it does not
    accept an option."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "events"
        path.touch()
        yield path


def build(*arguments):
    """Builds. Returns whether that succeeded."""
    return processes.run(["bazel", "build", *OPTIONS, *arguments]).returncode == 0


def test(flags, targets, events):
    """Tests. Returns Bazel's exit code."""
    command = ["bazel", "test", "--keep_going", f"--build_event_json_file={events}", *OPTIONS]
    return processes.exit_code(processes.run([*command, *flags, "--", *targets]))
