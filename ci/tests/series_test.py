"""ci/run runs jobs one after another, with jobs that leave a trace and three cases, and a setup
that does nothing. .ci/run is the same."""
import os
import signal
import subprocess
import time

import support
from jobs import cases, catalogue

JOB = """import os, pathlib, shutil
from jobs import cases
def main(arguments):
    folder = pathlib.Path(os.environ["FOLDER"])
    with open(folder / "started", "a") as started:
        print("{name}", file=started)
    shutil.copytree(folder / "three", cases.RESULTS / "{name}", dirs_exist_ok=True)
    return 0
"""
SETUP = """#!/bin/sh
echo setup "$@" >>"$FOLDER/started"
{}
"""


class SeriesCase(support.Case):
    def setUp(self):
        super().setUp()
        with support.results_in(self.folder):
            for name in ("a", "b"):
                cases.write_one("three", name, "passed")
            cases.write_one("three", "c", "skipped", "not here")
        for name in catalogue.JOBS:
            self.job(name, JOB.format(name=name))
        self.setup("")

    def job(self, name, text):
        """Puts a job in the place of another."""
        self.write(f"ci/jobs/{name.replace('-', '_')}.py", f'"""A job."""\n{text}')

    def setup(self, ending):
        self.write("ci/setup", SETUP.format(ending), executable=True)

    def started(self):
        """Returns everything that was started since the last call."""
        lines = self.read("started").splitlines()
        (self.folder / "started").unlink()
        return lines


class SeriesTest(SeriesCase):
    def test_all_jobs(self):
        for command in (".ci/run", "ci/run"):
            self.expect(0, "^20 passed, 0 failed, 10 skipped$", command)
            wanted = ["setup"]
            for name in catalogue.CI:
                wanted += [f"setup {name}", name]
            self.assertEqual(self.started(), wanted)

    def test_named_jobs(self):
        self.expect(0, "^20 passed, 0 failed, 10 skipped$", "ci/run")
        self.started()
        self.expect(0, "^4 passed, 0 failed, 2 skipped$", "ci/run", "tsan", "format")
        self.assertEqual(self.started(), "setup,setup tsan,tsan,setup format,format".split(","))
        kept = self.folder / "ci-results/default/a.xml"
        self.assertTrue(kept.exists(), "a job's results are gone after another's")
        self.write("ci-results/fleet/of_another_run.xml", "")
        self.expect(0, "^2 passed, 0 failed, 1 skipped$", ".ci/run", "fleet")
        self.assertFalse((self.folder / "ci-results/fleet/of_another_run.xml").exists())

    def test_a_job_with_arguments_is_run_alone(self):
        self.job("tsan", "def main(arguments):\n    print(*arguments)\n    return 7\n")
        self.expect(7, "^--config=x tsan$", "ci/run", "tsan", "--config=x", "tsan")
        self.job("tsan", "def main(arguments):\n    return len(arguments)\n")
        self.expect(0, "^$", "ci/run", "tsan", "--")
        self.assertFalse((self.folder / "started").exists(), "something is installed")

    def test_results_have_another_folder(self):
        self.expect(0, "^2 passed", "ci/run", "format", PERFRING_RESULTS="elsewhere")
        self.assertTrue((self.folder / "elsewhere/format/a.xml").exists())
        wanted = "^0 passed, 1 failed, 0 skipped$"
        text = self.expect(1, wanted, "ci/run", "format", PERFRING_RESULTS="/proc/none")
        self.assertIn("PERFRING_RESULTS is to be a folder that can be written to", text)

    def test_what_cannot_be_set_up_is_not_run(self):
        self.setup('[ "$1" != foreign ] && [ "$1" != cross ] || { echo no mirror; exit 1; }')
        text = self.expect(0, "^16 passed, 0 failed, 10 skipped$", "ci/run")
        self.assertIn("foreign: skipped as a whole: ci/setup foreign failed: no mirror\n", text)
        lines = text.splitlines()
        self.assertEqual(
            lines[-2], "NOT RUN: foreign cross (the reasons are above): ci/run foreign cross"
        )

    def test_what_would_begin_late_is_not_run(self):
        text = self.read("ci/jobs/series.py")
        self.assertIn("\nLATE = 1500\n", text)
        self.write("ci/jobs/series.py", text.replace("\nLATE = 1500\n", "\nLATE = 0\n"))
        text = self.expect(0, "^12 passed, 0 failed, 10 skipped$", "ci/run")
        names = "fuzz package foreign cross"
        line = f"NOT RUN: {names} (the reasons are above): ci/run {names}"
        self.assertEqual(text.splitlines()[-2], line)
        self.assertIn("minutes have passed", self.read("ci-results/fuzz/fuzz.xml"))

    def test_a_job_that_ends_badly_is_counted(self):
        self.job("tsan", "def main(arguments):\n    return 3\n")
        text = self.expect(1, "^18 passed, 1 failed, 9 skipped$", "ci/run")
        self.assertIn("\nci/run tsan failed; run it alone to see it again\n", text)
        self.assertIn("exit code 3", self.read("ci-results/tsan/job.xml"))
        self.job("tsan", "def main(arguments):\n    return [][0]\n")
        text = self.expect(1, "^2 passed, 1 failed, 1 skipped$", "ci/run", "tsan", "format")
        self.assertIn("IndexError", text)

    def test_a_job_without_a_test_case_fails(self):
        self.job("tsan", "def main(arguments):\n    return 0\n")
        self.expect(1, "^0 passed, 1 failed, 0 skipped$", "ci/run", "tsan")

    def test_a_job_whose_set_up_fails_is_counted(self):
        self.setup('[ "$1" != tsan ] || exit 3')
        self.expect(1, "^0 passed, 1 failed, 0 skipped$", "ci/run", "tsan")
        self.assertIn("exit code 3", self.read("ci-results/tsan/job.xml"))
        self.setup("exit 3")
        text = self.expect(1, "^0 passed, 1 failed, 0 skipped$", "ci/run")
        self.assertIn("ci/setup failed: no job can be run\n", text)


SLEEPS = """#!/bin/sh
echo $$ >"$FOLDER/pid.new"
mv "$FOLDER/pid.new" "$FOLDER/pid"
exec sleep 300
"""
RUNS_IT = """from jobs import processes
def main(arguments):
    return processes.run(["sleeps"]).returncode
"""
TAKES_IT = """import threading
from jobs import processes
def main(arguments):
    event = threading.Event()
    with processes.calling(event.set):
        open("ready", "w").close()
        event.wait(60)
    return 0
"""


# A signal comes while Popen is at work, whose process has already begun.
STARTS_IT = """import os, pathlib, signal, subprocess
from jobs import processes
class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        while not pathlib.Path("pid").exists():
            pass
        os.kill(os.getpid(), signal.SIGTERM)
def main(arguments):
    subprocess.Popen = Popen
    return processes.run(["sleeps"], cwd=".").returncode
"""


class SignalTest(SeriesCase):
    """A signal ends the run and its children."""

    def setUp(self):
        super().setUp()
        self.program("sleeps", SLEEPS)

    def signalled(self, number, ready, *command):
        """Sends a signal once a file exists. Returns the exit code and the output."""
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            self.wait_for(ready)
            process.send_signal(number)
            text, _ = process.communicate(timeout=60)
        return process.returncode, text

    def is_over(self):
        """Waits until the child is gone."""
        pid = int(self.read("pid"))
        for _ in range(100):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.05)
        return False

    def test_a_signal_ends_the_run_and_its_children(self):
        self.job("tsan", RUNS_IT)
        for number, status in {signal.SIGTERM: 143, signal.SIGINT: 130}.items():
            for command in (["ci/run", "tsan", "format"], ["ci/run", "tsan", "--x"]):
                with self.subTest(number=number, command=command):
                    ended, text = self.signalled(number, "pid", *command)
                    self.assertEqual(ended, status, text)
                    self.assertNotIn("passed", text)
                    self.assertTrue(self.is_over(), "the child goes on")
                    self.assertNotIn("format", self.read_started())
                    (self.folder / "pid").unlink()

    def test_a_signal_during_a_start_ends_the_child(self):
        self.job("tsan", STARTS_IT)
        ended, text = self.signalled(signal.SIGCONT, "pid", "ci/run", "tsan", "--x")
        self.assertEqual(ended, 143, text)
        self.assertTrue(self.is_over(), "the child goes on")

    def read_started(self):
        path = self.folder / "started"
        return path.read_text().split() if path.exists() else []

    def test_no_job_is_begun_after_a_signal(self):
        """Even if a job has ended well by it."""
        self.job("tsan", TAKES_IT)
        ended, text = self.signalled(signal.SIGTERM, "ready", "ci/run", "tsan", "format")
        self.assertEqual(ended, 143, text)
        self.assertNotIn("format", self.read_started())
