"""What is kept of `bazel test`, and how it is counted."""
import json

import support
from jobs import cases, results

ONE = '<testsuites><testcase name="a" classname="A"/></testsuites>'
SKIPPED = (
    '<testsuites><testcase name="a" classname="A"><skipped message="b"/></testcase></testsuites>'
)
# Bazel writes its events even if it refuses a flag.
WRITES_EVENTS = """#!/bin/sh
echo "$@" >>"$FOLDER/commands"
[ "$1" != query ] || exit "${QUERY:-0}"
for argument; do
  case $argument in --build_event_json_file=*) cp "$FOLDER/events" "${argument#*=}" ;; esac
done
[ "${STATUS:-0}" != 2 ] || echo "ERROR: Unrecognized option: $*"
exit "${STATUS:-0}"
"""


class ReportsTest(support.Case):
    def setUp(self):
        super().setUp()
        self.program("bazel", WRITES_EVENTS)
        self.events = []

    def configured(self, *tags):
        """Adds a test with these tags."""
        label = {"targetConfigured": {"label": "//a:a_test"}}
        self.events.append({"id": label, "configured": {"tag": tags}})

    def result(self, file, contents, status="PASSED", **identity):
        """Adds a test.xml."""
        path = self.write(file, contents)
        output = {"name": "test.xml", "uri": f"file://{path}"}
        self.events.append(
            {
                "id": {"testResult": {"label": "//a/b:a_test", **identity}},
                "testResult": {"status": status, "testActionOutput": [output]},
            }
        )

    def count(self, status, last, bazel=0):
        """Runs the job; checks its exit code and its last line. Returns its output."""
        self.write("events", "".join(f"{json.dumps(each)}\n" for each in self.events))
        return self.expect(status, last, "ci/run", "test_job", "job", STATUS=str(bazel))

    def test_a_test_outside_the_sandbox_is_not_cached(self):
        """Its result depends on the machine."""
        self.configured("no-sandbox")
        text = self.count(1, "^job: 0 passed, 1 failed")
        self.assert_line(text, "//a:a_test.*tagged external")
        self.events = []
        self.configured("external", "no-sandbox")
        self.assertNotIn("//a:a_test", self.count(1, "^job: 0 passed, 1 failed"))

    def two_shards(self):
        self.result("one.xml", ONE, shard=1)
        self.result("two.xml", SKIPPED, shard=2)

    def test_reports_have_the_names_of_the_tests(self):
        self.two_shards()
        self.count(0, "^job: 1 passed, 0 failed, 1 skipped$")
        folder = self.folder / "ci-results/job"
        kept = sorted(str(each.relative_to(folder)) for each in folder.rglob("*.xml"))
        self.assertEqual(kept, ["a/b/a_test.shard2.xml", "a/b/a_test.xml"])
        with support.results_in(self.folder / "ci-results"):
            counts = results.sum_up(["job"])
        self.assertEqual(cases.line(counts), "1 passed, 0 failed, 1 skipped")

    def test_what_bazel_itself_says_is_kept(self):
        self.two_shards()
        self.count(1, "^job: 1 passed, 1 failed, 1 skipped$", bazel=3)
        self.assertIn("ended with exit code 3", self.read("ci-results/job/bazel.xml"))

    def test_a_report_that_is_not_xml_is_a_failure(self):
        """A failing test may have printed characters that are not allowed in XML."""
        self.two_shards()
        self.count(0, "^job: 1 passed, 0 failed, 1 skipped$")
        self.events = []
        self.result("one.xml", ONE.replace("A", "\x01"))
        self.count(1, "^job: 0 passed, 1 failed")
        old = self.folder / "ci-results/job/a/b/a_test.shard2.xml"
        self.assertFalse(old.exists(), "another run's report is kept")

    def test_a_bad_end_without_a_failed_case_fails(self):
        self.result("one.xml", ONE, status="TIMEOUT")
        text = self.count(1, "^job: 1 passed, 1 failed, 0 skipped$")
        self.assertIn("job: FAILED //a/b:a_test: TIMEOUT\n", text)

    def test_a_missing_target_is_found_before_builds(self):
        command = ["ci/run", "test_job", "name", "--", "//no/such:target"]
        self.expect(2, "^$", *command, QUERY="1")
        self.assertEqual(self.read("commands"), "query --noshow_progress set(//no/such:target)\n")

    def test_a_flag_that_bazel_refuses_is_not_counted(self):
        self.write("events", "{}\n")
        wanted = "Unrecognized option: .* --secure"
        self.expect(2, wanted, "ci/run", "default", "--secure", STATUS="2")
        self.assertFalse((self.folder / "ci-results/default").exists())

    def command_of(self, *arguments, **environment):
        """Returns the words of the only `bazel test` of a job, without the file of events."""
        self.write("events", "")
        self.run_command("ci/run", *arguments, **environment)
        (line,) = [each for each in self.read("commands").splitlines() if each.startswith("test ")]
        (self.folder / "commands").unlink()
        return [word for word in line.split() if not word.startswith("--build_event")]

    def test_the_default_job_is_readmes_command(self):
        readme = "bazel test //..."
        own = ["test", "--keep_going", "--show_progress_rate_limit=30"]
        command = self.command_of("default", "--keep_going")
        self.assertEqual(command, [*own, "--keep_going", "--", *readme.split()[2:]])
        command = self.command_of("default", "--config=opt", "--", "//lib/...", CI="true")
        self.assertEqual(command, [*own, "--config=ci", "--config=opt", "--", "//lib/..."])

    def test_the_targets_of_other_jobs(self):
        command = self.command_of("tsan", "--config=ci")
        self.assertEqual(
            command[3:6], ["--config=tsan", "--test_tag_filters=-native", "--config=ci"]
        )
        for target in ("//lib/perfring:all", "//lib/perfring/ring/...", "//harness/stress/..."):
            self.assertIn(target, command)
        command = self.command_of("asan-ubsan", "--copt=-O0")
        self.assertEqual(command[3:5], ["--config=fuzz", "--test_tag_filters=-native,-executions"])
        self.assertIn("//harness/rig/...", command)
        command = self.command_of("asan-ubsan", "--all")
        wanted = ["--config=fuzz", "--test_tag_filters=-native", "--", "//..."]
        self.assertEqual(command[3:], wanted)
        command = self.command_of("configs", "riscv64", "--bazel=--jobs=1")
        wanted = ["--config=riscv64", "--nobuild_tests_only", "--jobs=1", "--", "//lib/..."]
        self.assertEqual(command[3:], wanted)
        command = self.command_of("cross", "armhf", "--all")
        self.assertEqual(command[3:], ["--config=armhf", "--", "//..."])

    def test_cross_and_configs_end_with_a_table(self):
        self.two_shards()
        self.write("events", "".join(f"{json.dumps(each)}\n" for each in self.events))
        text = self.expect(0, "^cross: 2 passed, 0 failed, 2 skipped$", "ci/run", "cross", "--all")
        self.assert_line(text, r"^\| processor \| passed \| failed \| skipped \| seconds \|$")
        self.assert_line(text, r"^\| s390x \| 1 \| 0 \| 1 \| \d+ \|$")
        text = self.expect(
            1, "^configs: 1 passed, 1 failed", "ci/run", "configs", "opt", STATUS="1"
        )
        self.assert_line(text, r"^\| opt \| 1 \| 1 \| 1 \| \d+ \|$")
