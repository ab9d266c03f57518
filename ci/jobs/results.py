"""Keeps the JUnit reports of `bazel test` in ci-results/JOB/, and judges a job by them.

A job fails if a test case failed, if Bazel failed (a build error counts as one failed test), if
there was no test case at all, or if Bazel would cache the result of a test that depends on the
machine.
"""
import json
import shutil
import urllib.parse

from jobs import bazel, cases


def read_events(events_path):
    """Returns what Bazel says of tests: how each was configured, and each result."""
    with open(events_path, encoding="utf-8") as lines:
        events = map(json.loads, lines)
        return [event for event in events if "testResult" in event or "configured" in event]


def test_results(events):
    """Yields each test (and shard, and attempt) that this invocation ran or had cached: its label,
    the name of its kept report, its status, and its test.xml."""
    for event in events:
        if "testResult" not in event:
            continue
        identity, result = event["id"]["testResult"], event["testResult"]
        name = identity["label"].lstrip("@/").replace(":", "/").lstrip("/")
        for each in ("run", "shard", "attempt"):
            if identity.get(each, 1) > 1:
                name += f".{each}{identity[each]}"
        for output in result.get("testActionOutput", []):
            if output["name"] == "test.xml":
                path = urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
                yield identity["label"], name, result["status"], path


def kept_by_mistake(events):
    """Yields the tests that run outside the sandbox, and so depend on the machine, but whose
    results Bazel would cache."""
    for event in events:
        tags = event.get("configured", {}).get("tag", [])
        if "no-sandbox" in tags and "external" not in tags:
            yield event["id"]["targetConfigured"]["label"]


class Keeper:
    """Keeps the reports of one `bazel test`, and prints failed and skipped test cases."""

    def __init__(self, job):
        self.job = job
        self.folder = cases.RESULTS / job
        self.unreported = []  # failures without a report: rows of a report of their own
        self.cases, self.failures = 0, 0  # in the reports
        shutil.rmtree(self.folder, ignore_errors=True)  # left by another run
        self.folder.mkdir(parents=True)

    def fail(self, label, text):
        self.unreported.append(("bazel", label, "failed", text))
        print(f"{self.job}: FAILED {label}: {text}")

    def add(self, label, name, status, path):
        """Keeps a report, of a test that ended with Bazel's `status`."""
        test = cases.read(path)
        if test is None:
            self.fail(label, f"{status}, and {path} cannot be read")
            return
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, self.folder / f"{name}.xml")
        failures = 0
        for case in test:
            kind, reason = cases.outcome(case)
            self.cases += 1
            failures += kind == "failed"
            if kind == "failed":
                print(f"{self.job}: FAILED {label} {cases.title(case)}")
            elif kind == "skipped":
                print(f"{self.job}: skipped {label} {cases.title(case)}: {reason}")
        self.failures += failures
        if status not in ("PASSED", "FLAKY") and failures == 0:
            self.fail(label, status)  # a crash, a timeout, or a sanitizer's report at exit

    def finish(self, bazel_status):
        """Adds what no report says."""
        if bazel_status != 0 and self.failures + len(self.unreported) == 0:
            self.fail("bazel", f"ended with exit code {bazel_status}")
        if self.cases + len(self.unreported) == 0:
            self.fail("bazel", "no test case was run")
        if self.unreported:
            cases.write(self.folder / "bazel.xml", self.unreported)


def keep(job, bazel_status, events_path):
    """Keeps the test.xml files of one `bazel test`, which ended with an exit code and wrote a file
    of build events (JSON); other errors go to bazel.xml. Prints the counts, and returns them."""
    keeper = Keeper(job)
    events = read_events(events_path)
    for each in test_results(events):
        keeper.add(*each)
    for label in kept_by_mistake(events):
        keeper.fail(label, "a test tagged no-sandbox is to be tagged external, too")
    keeper.finish(bazel_status)
    counts = cases.count(cases.RESULTS / job)
    print(f"{job}: {cases.line(counts)}")
    return counts


def job_of_tests(job, flags, targets=("//...",)):
    """Runs `bazel test` as a job. Returns the job's exit code; 2 if Bazel has refused the command
    line and printed the reason, so that there is nothing to count."""
    with bazel.events_file() as events:
        status = bazel.test(flags, targets, events)
        if status == bazel.REFUSED or events.stat().st_size == 0:
            return 2
        return 1 if keep(job, status, events)["failed"] else 0


def ended(job, status):
    """Adds a failed test case if the job failed, or ran nothing, and no report says so."""
    counts = cases.count(cases.RESULTS / job)
    if sum(counts.values()) == 0 or (status != 0 and counts["failed"] == 0):
        text = f"ended with exit code {status}, and said no more"
        cases.write(cases.RESULTS / job / "job.xml", [("job", job, "failed", text)])


def sum_up(jobs):
    """Returns the counts of several jobs' reports."""
    return cases.total(cases.count(cases.RESULTS / job) for job in jobs)


def finish(job):
    """Prints the counts of a job's reports. Returns the job's exit code."""
    counts = sum_up([job])
    print(f"{job}: {cases.line(counts)}")
    return 1 if counts["failed"] else 0
