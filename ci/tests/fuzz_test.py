#!/usr/bin/env python3
"""Tests the job fuzz with a script in place of the libFuzzer programs: which options it passes to
them, what it does with their findings, and how it ends."""
import base64
import configparser
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path("ci/tests").resolve()))
import support

# Reaches new code, and finds something if the file PROGRAM.finds exists.
LIBFUZZER = r"""#!/bin/bash
trap 'exit 72' INT # set before the test can see that it has begun
name=${PWD##*/}
echo "$@" >>"$FOLDER/$name.calls"
for argument; do
  case $argument in
    -exact_artifact_path=*) echo small >"${argument#*=}"; exit 0 ;;
    -artifact_prefix=*) prefix=${argument#*=} ;;
    -set_cover_merge=1) merged=1 ;;
    -*) ;;
    *) files+=("$argument") ;;
  esac
done
if [ -n "${merged:-}" ]; then
  cp "${files[1]}"/new "${files[0]}"
elif [ -n "${prefix:-}" ]; then
  ls "${files[0]}" >"$FOLDER/$name.inputs"
  echo "#99 NEW    cov: 12 ft: 34 corp: 5/67b lim: 8 exec/s: 9 rss: 10Mb" >&2
  echo new >"${files[0]}/new"
  [ ! -e "$FOLDER/$name.lasts" ] || { touch "$FOLDER/$name.sleeps"; sleep 60 >/dev/null 2>&1 & wait; }
  [ ! -e "$FOLDER/$name.breaks" ] || exit 1
  [ -e "$FOLDER/$name.finds" ] || exit 0
  echo long >"${prefix}crash-1234"
  exit 77
else
  echo "fuzz: violated: once" >&2
  exit 77
fi
"""
BAZEL = """#!/bin/sh
echo "$@" >>"$FOLDER/builds"
exit "${BUILD:-0}"
"""
TARGETS = "hostile_ring kernel_script planted_fault parsers/litmus parsers/trace".split()
OPTIONS = """[hostile_ring]
max_len = 77
dict = ring.dict
[kernel_script]
max_len = 77
dict = ring.dict
[planted_fault]
max_len = 77
dict = ring.dict
[parsers]
max_len = 77
dict = ring.dict
[parsers/litmus]
[parsers/trace]
max_len = 78
"""


SMALL = b"small\n"


def name_of(text):
    return hashlib.sha1(text).hexdigest()[:12]


class FuzzTest(support.Case):
    def setUp(self):
        super().setUp()
        self.kept = self.folder / "cache/perfring/fuzz"
        self.archive = self.folder / "fuzz/hostile_ring_corpus.zip"
        self.crash = f"hostile_ring_regressions/crash-{name_of(SMALL)}"
        self.program("bazel", BAZEL)
        for target in TARGETS:
            self.write(f"bazel-bin/fuzz/{target}_bin", LIBFUZZER, executable=True)
            self.write(f"bazel-bin/fuzz/{target}_seeds/a_seed", "seed\n")
        self.write("fuzz/options.ini", OPTIONS)
        self.write("fuzz/hostile_ring_regressions/crash-1", "crash\n")
        (self.folder / "fuzz/parsers").mkdir()
        with zipfile.ZipFile(self.archive, "w") as packed:
            packed.writestr("old", "old\n")
        self.before = self.tree()

    def tree(self):
        """Returns the contents of fuzz/."""
        return {
            path: path.read_bytes()
            for path in sorted((self.folder / "fuzz").rglob("*"))
            if path.is_file()
        }

    def unchanged(self):
        self.assertEqual(self.tree(), self.before, "fuzz/ has changed")

    def fuzz(self, status, *arguments, **environment):
        """Runs the job; checks its exit code. Returns its output."""
        for old in self.folder.glob("*.calls"):
            old.unlink()
        return self.expect(status, "^", "ci/run", "fuzz", *arguments, **environment)

    def given(self, target, regex):
        """Checks the arguments of a libFuzzer process."""
        self.assert_line(self.read(f"{target}.calls"), regex)

    def archived(self):
        with zipfile.ZipFile(self.archive) as packed:
            return packed.namelist()

    def touch(self, name):
        self.write(name, "")

    def test_nothing_is_found(self):
        """The checkout does not change. New inputs are kept, and used by the next campaign."""
        text = self.fuzz(0, "hostile_ring", "--seconds", "3", "--jobs", "1")
        self.unchanged()
        built = "build .*--config=fuzz fuzz/hostile_ring_bin fuzz/hostile_ring_seeds"
        self.assertRegex(self.read("builds"), f"^{built}\n$")
        self.given(
            "hostile_ring", f"-max_len=77 -dict={self.folder}/fuzz/ring.dict -max_total_time=3 "
        )
        inputs = ["corpus-old", "regressions-crash-1", "seeds-a_seed"]
        self.assertEqual(self.read("hostile_ring.inputs").split(), inputs)
        self.assert_line(text, "^target +executions +seconds")
        self.assert_line(text, r"^hostile_ring +99 .* 12 +34 +5 \(67b\) +nothing$")
        self.assert_line(text, f"1 of hostile_ring, in {self.kept}$")
        last = text.rstrip("\n").rpartition("\n")[2]
        self.assertEqual(last, "To merge them into fuzz/*_corpus.zip: ci/run fuzz --merge")
        self.assertEqual(os.listdir(self.kept / "hostile_ring_corpus"), ["new"])

    def test_merge(self):
        self.fuzz(0, "hostile_ring", "--seconds", "3", "--jobs", "1")
        self.fuzz(0, "hostile_ring", "--seconds", "3", "--merge", "--jobs", "1")
        self.assertIn("kept-new", self.read("hostile_ring.inputs").split())
        self.assertEqual(self.archived(), [name_of(b"new\n")])
        self.assertFalse((self.kept / "hostile_ring_corpus").exists(), "what is merged is kept")

    def test_the_same_inputs_give_the_same_archive(self):
        """At any time and with any permissions."""
        self.fuzz(0, "hostile_ring", "--merge", "--jobs", "1")
        self.before = self.tree()
        mask = os.umask(0o077)
        self.addCleanup(os.umask, mask)
        self.fuzz(0, "hostile_ring", "--merge", "--jobs", "1", TZ="Asia/Tokyo")
        self.unchanged()

    def test_a_folders_targets_share_its_time(self):
        self.fuzz(0, "parsers", "--seconds", "6", "--jobs", "1")
        dictionary = f"-dict={self.folder}/fuzz/parsers/ring.dict"
        self.given("litmus", f"{dictionary} -max_total_time=3 ")
        self.given("litmus", "-max_len=77 ")
        self.given("trace", f"-max_len=78 {dictionary} -max_total_time=3 ")

    def weigh(self):
        """Gives the targets weights."""
        text = OPTIONS
        for section, weight in {"hostile_ring": 9, "parsers": 2, "parsers/trace": 6}.items():
            text = text.replace(f"[{section}]\n", f"[{section}]\nweight = {weight}\n")
        self.write("fuzz/options.ini", text)

    def test_weights_divide_the_time(self):
        """Of two targets, and in a folder the time of one."""
        self.weigh()
        for arguments, times in {
            ("hostile_ring", "kernel_script", "--seconds", "50"): {
                "hostile_ring": 90,
                "kernel_script": 10,
            },
            ("parsers", "--seconds", "40"): {"trace": 30, "litmus": 10},
            ("kernel_script", "parsers", "--seconds", "9"): {
                "kernel_script": 2,
                "trace": 12,
                "litmus": 4,
            },
            ("hostile_ring", "hostile_ring", "--seconds", "3"): {"hostile_ring": 3},
        }.items():
            with self.subTest(arguments=arguments):
                self.fuzz(0, *arguments, "--jobs", "1")
                for target, seconds in times.items():
                    self.given(target, f" -max_total_time={seconds} ")

    def test_weights_are_not_passed_to_libfuzzer(self):
        self.weigh()
        program = (
            "import pathlib, sys; sys.path.insert(0, 'ci'); from jobs import fuzz_target\n"
            "print(fuzz_target.options_of(pathlib.Path('hostile_ring')))"
        )
        options = {"max_len": "77", "dict": "ring.dict"}
        self.expect(0, f"^{options}$", sys.executable, "-c", program)

    def test_only_a_named_target_gets_a_new_corpus(self):
        self.fuzz(0, "parsers", "--merge", "--jobs", "1")
        self.unchanged()
        self.assertEqual(os.listdir(self.kept / "litmus_corpus"), ["new"])
        self.fuzz(0, "litmus", "--seconds", "6", "--merge", "--jobs", "1")
        self.given("litmus", "-max_total_time=6")
        self.assertFalse((self.folder / "trace.calls").exists(), "trace was not named, and is run")
        self.assertTrue((self.folder / "fuzz/parsers/litmus_corpus.zip").exists())

    def test_an_input_above_max_len_is_an_error(self):
        self.write("bazel-bin/fuzz/kernel_script_seeds/long", "\0" * 78)
        text = self.fuzz(1, "kernel_script")
        self.assert_line(text, "^ci/run fuzz: kernel_script: seeds-long is longer than 77 bytes")

    def test_a_finding_is_minimized_and_kept(self):
        """And the command that replays it is printed."""
        self.touch("hostile_ring.finds")
        text = self.fuzz(1, "hostile_ring", "kernel_script")
        self.unchanged()
        found = f"{self.kept}/{self.crash}"
        replay = "replay: bazel run --config=fuzz //fuzz:hostile_ring_run --"
        self.assert_line(text, "^hostile_ring: fuzz: violated: once$")
        self.assert_line(text, f"{replay} {found}$")
        self.assert_line(
            text, f"as a regression test: .* cp {found} fuzz/hostile_ring_regressions/$"
        )
        self.assert_line(text, "^hostile_ring .* 1$")
        self.assert_line(text, "^kernel_script .* nothing$")
        self.assertEqual(pathlib.Path(found).read_bytes(), b"small\n")
        self.given("hostile_ring", "-minimize_crash=1")
        coded = base64.b64encode(b"small\n").decode()
        self.assertIn(f"in base64: {coded}", self.read("ci-results/fuzz/fuzz.xml"))
        text = self.fuzz(1, "hostile_ring", "--merge")
        self.assert_line(text, f"{replay} fuzz/{self.crash}$")
        self.assertEqual(self.read(f"fuzz/{self.crash}"), "small\n")

    def test_a_program_that_ends_badly_is_a_finding(self):
        """Even if it leaves no input."""
        self.touch("kernel_script.breaks")
        self.fuzz(1, "kernel_script")

    def test_the_planted_fault_is_to_be_found(self):
        text = self.fuzz(1, "--jobs", "2")
        self.assert_line(text, "^planted_fault .* NOT its fault$")
        self.touch("planted_fault.finds")
        text = self.fuzz(0, "--jobs", "4")
        self.assert_line(text, "^planted_fault .* its fault$")
        report = self.read("ci-results/fuzz/fuzz.xml")
        self.assertEqual(report.count("<testcase"), 5, report)
        self.assertNotIn("<failure", report)
        self.unchanged()
        self.assertFalse((self.kept / "planted_fault_corpus").exists(), "its inputs are kept")

    def test_a_signal_ends_the_campaign(self):
        """And the results so far are reported."""
        self.touch("hostile_ring.lasts")
        with subprocess.Popen(
            ["ci/run", "fuzz", "hostile_ring", "--jobs", "1"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            self.wait_for("hostile_ring.sleeps")
            process.send_signal(signal.SIGTERM)
            text, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, text)
        self.assert_line(text, "^Stopped early")
        self.assert_line(text, "^hostile_ring +99 ")

    def test_an_unusable_cache_stops_before_builds(self):
        text = self.fuzz(2, "hostile_ring", XDG_CACHE_HOME="/proc/none")
        self.assert_line(text, "^ci/run fuzz: /proc/none/perfring/fuzz: .*; set XDG_CACHE_HOME")
        self.assertFalse((self.folder / "builds").exists(), "it has built")

    def test_a_build_that_fails(self):
        self.fuzz(2, "hostile_ring", BUILD="1")


class WeightsTest(unittest.TestCase):
    def test_hostile_input_gets_most_of_the_time(self):
        """hostile_ring, the decoder of records, and the parsers of files that a user receives."""
        options = configparser.ConfigParser()
        options.read("fuzz/options.ini")
        folder = options["parsers"]["weight"]
        weights = {
            name: int(options[name].get("weight", folder))
            for name in options.sections()
            if name != "parsers"
        }
        hostile = {"hostile_ring", "record", "parsers/perf_data", "parsers/elf"}
        self.assertLess(hostile, set(weights))
        of_hostile = [weights[name] for name in hostile]
        self.assertGreater(min(of_hostile), max(weights[name] for name in set(weights) - hostile))
        self.assertGreater(2 * sum(of_hostile), sum(weights.values()))


if __name__ == "__main__":
    support.answer(sys.argv[1:], "usage: ci/tests/fuzz_test.py, in the workspace's folder")
    unittest.main()
