"""Each source that OSS-Fuzz compiles exists, and belongs to a fuzz target in Bazel, too. A missing
source is named before anything compiles."""
import unittest

import support

FUZZED = support.WORKSPACE / "fuzzed_files"  # from Bazel: labels
TARGETS = "hostile_ring kernel_script two_consumers parsers/elf parsers/live_options".split()


@unittest.skipUnless(FUZZED.exists(), "only Bazel writes fuzzed_files: bazel test //:ci_test")
class SourcesTest(support.Case):
    def setUp(self):
        super().setUp()
        for label in FUZZED.read_text(encoding="utf-8").split():
            self.write(label.removeprefix("//").replace(":", "/"), "")
        self.write("fuzz/options.ini", "".join(f"[{each}]\n" for each in TARGETS))

    def test_each_source_exists(self):
        self.expect(0, "[.]cc$", "ci/oss-fuzz/build.sh", "--sources")

    def test_a_target_that_does_not_exist(self):
        self.expect(
            2,
            "there is no target parsers/dwarf$",
            "ci/oss-fuzz/build.sh",
            TARGETS="hostile_ring parsers/dwarf",
        )

    def test_a_source_that_does_not_exist(self):
        (self.folder / "harness/bench/bench_options.cc").unlink()
        wanted = "there is no harness/bench/bench_options[.]cc$"
        self.expect(2, wanted, "ci/oss-fuzz/build.sh")
