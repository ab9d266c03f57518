"""What single jobs do, with stand-ins for the programs that they run."""
import contextlib
import fcntl
import io
import json
import os
import pathlib
import unittest
from unittest import mock

import support
from jobs import another_workspace, bench, checks, conform, debian_packages, docs, format

# How, the values in the order of the runs, the outcome, and whether no more runs are needed.
VERDICTS = [
    ("at most", [1.0, 1.1, 1.0], "passed", True),
    ("at most", [4.0, 1.0, 1.1, 1.0], "passed", True),
    ("at most", [2.1, 2.0, 2.1], "failed", False),  # twice as slow, whatever the machine does
    ("at most", [2.1, 3.0, 2.5, 4.0, 2.1, 2.9, 3.3, 2.2], "failed", False),
    ("at most", [1.6, 2.1, 3.0, 1.5, 2.5, 1.7, 2.1, 3.0], "passed", False),
    ("at most", [1.6, 2.1, 3.0, 2.5, 2.6, 2.1, 3.0, 1.9], "skipped", False),
    ("at most", [2.5, 1.0, 2.1, 2.1, 2.1], "skipped", False),  # settled, and yet once well within
    ("at least", [1.9, 1.8, 1.9], "passed", True),
    ("at least", [1.0, 0.9, 1.0], "failed", False),
    ("at least", [1.0, 0.9, 1.9, 1.0], "skipped", False),
]


class BenchTest(unittest.TestCase):
    def test_verdicts(self):
        """A ratio that a busy machine leaves open is skipped, and a slow drain fails."""
        for how, values, outcome, certain in VERDICTS:
            with self.subTest(how=how, values=values):
                self.assertEqual(bench.verdict(how, 1.75, values)[0], outcome)
                self.assertEqual(bench.is_certain(how, 1.75, values), certain)


LIVE_TESTS = """// K10, W8c: why,
// K3 is not what it shows.
TEST_F(A, B) {}
// K2
TEST(A,
     C) {}
// Without the last of them (K3).
TEST(A, D) {}
"""
FACTS = """before
<!-- ci/run kernel_facts: -->
| fact | old | new |
| --- | --- | --- |
| kernel | 6.1.0-x | 6.12.1-x |
| K2 | yes | no |
| K10 | skipped | yes |
| W8c | skipped | yes |
<!-- :ci/run kernel_facts -->
after
"""


class KernelFactsTest(support.Case):
    """The facts come from the beginnings of the tests' comments, the columns from the reports of
    the guests, the oldest kernel first. A report that names no guest gets no column."""

    def setUp(self):
        super().setUp()
        self.write("harness/live/tests/a_test.cc", LIVE_TESTS)
        begin, end = "<!-- ci/run kernel_facts: -->", "<!-- :ci/run kernel_facts -->"
        self.write("harness/KERNEL_FACTS.md", f"before\n{begin}\nold\n{end}\nafter\n")
        self.report("new", "new", "6.12.1-x", 'name="B">', 'name="C"><failure message="x"/>')
        self.report("old", "old", "6.1.0-x", 'name="B"><skipped message="x"/>')
        self.report("old-C", "old", "6.1.0-x", 'name="C">')
        nobody = '<testsuites><testcase classname="A" name="B"/></testsuites>'
        self.write("ci-results/foreign/nobody.xml", nobody)

    def report(self, file, guest, kernel, *cases):
        text = "".join(f'<testcase classname="A" {case}</testcase>' for case in cases)
        suites = f'<testsuites guest="{guest}" kernel="{kernel}">{text}</testsuites>'
        self.write(f"ci-results/foreign/{file}.xml", suites)

    def test_the_table(self):
        last = "^ci/run kernel_facts: 2 kernels in harness/KERNEL_FACTS.md$"
        self.expect(0, last, "ci/run", "kernel_facts")
        self.assertEqual(self.read("harness/KERNEL_FACTS.md"), FACTS)

    def test_named_columns(self):
        self.expect(0, "^", "ci/run", "kernel_facts", "new")
        self.assertIn("\n| kernel | 6.12.1-x |\n", self.read("harness/KERNEL_FACTS.md"))

    def test_a_file_without_a_place_for_the_table(self):
        self.write("harness/KERNEL_FACTS.md", "before\n")
        self.expect(2, "has not both of", "ci/run", "kernel_facts")


class FormatTest(support.Case):
    FILES = {"a.h": "", "b.py": "", "c.sh": "", "d": "#!/usr/bin/env bash\n", "e.md": ""}
    FILES |= {"f": "#!/usr/bin/env python3\n", "g": "#!/usr/bin/awk\n"}
    PROGRAMS = ("clang-format-19", "shfmt", "shellcheck", "black")

    def setUp(self):
        super().setUp()
        for name, text in self.FILES.items():
            self.write(name, text)
        names = "\\0".join([*self.FILES, "deleted.py"])
        self.program("git", f"#!/bin/sh\nprintf '{names}\\0'\n")
        for name in self.PROGRAMS:
            self.program(
                name, f'#!/bin/sh\necho "{name} $*" >>"$FOLDER/calls"\nexit "${{STATUS:-0}}"\n'
            )

    def test_checks(self):
        self.expect(0, "^$", "ci/run", "format", "--")
        wanted = [
            "clang-format-19 --dry-run -Werror a.h",
            "shfmt -i 2 -ci -d c.sh d",
            "shellcheck -x -S warning c.sh d",
            "black -q -l 100 --check --diff b.py f",
        ]
        self.assertEqual(self.read("calls").splitlines(), wanted)

    def test_rewrites(self):
        self.expect(0, "^$", "ci/run", "format", "--fix")
        wanted = [
            "clang-format-19 -i a.h",
            "shfmt -i 2 -ci -w c.sh d",
            "shellcheck -x -S warning c.sh d",
            "black -q -l 100 b.py f",
        ]
        self.assertEqual(self.read("calls").splitlines(), wanted)

    def test_what_differs_is_a_failed_case(self):
        last = "^format: the files above differ; 'ci/run format --fix' rewrites them$"
        self.expect(1, last, "ci/run", "format", "--", STATUS="1")
        self.assertIn("<failure", self.read("ci-results/format/shfmt.xml"))

    def test_a_tool_that_is_not_installed(self):
        with contextlib.redirect_stderr(io.StringIO()) as text:
            self.assertFalse(format.holds(["no-such-black"], ["b.py"]))
        wanted = "format: no-such-black is not installed: run ci/setup format\n"
        self.assertEqual(text.getvalue(), wanted)

    def test_no_file_of_a_kind_is_a_failure(self):
        self.assertFalse(format.holds(["true"], []))


RULES = "".join(f"//   S{number} Rule {number}\n//       goes on.\n" for number in range(1, 12))
DOXYGEN = """#!/bin/sh
cat >"$FOLDER/settings"
rules=$(sed -n 's/^INPUT += //p' "$FOLDER/settings")
cp "$rules" "$FOLDER/rules.md"
html=$(sed -n 's/^OUTPUT_DIRECTORY = //p' "$FOLDER/settings")/html
for page in PAGES; do echo "Detailed Description" >"$html/$page.html"; done
echo "a note" >&2
exit "${STATUS:-0}"
"""


class DocsTest(support.Case):
    def setUp(self):
        super().setUp()
        pages = [*docs.PAGES, *(f"classperfring_1_1{name}" for name in docs.CLASSES)]
        self.pages = " ".join(pages)
        self.program("doxygen", DOXYGEN.replace("PAGES", self.pages))
        self.write("ci/packaging/Doxyfile", "QUIET = YES\n")
        self.write("lib/perfring/ring/ring.h", RULES)
        self.write("lib/perfring/perf_buffer.h", "")
        lines = ("MAJOR 0", "MINOR 1", "PATCH 2")
        version = "".join(f"#define PERFRING_VERSION_{line}\n" for line in lines)
        self.write("lib/perfring/version.h", version)

    def test_the_reference(self):
        html = self.folder / "ci-results/docs/html/index.html"
        self.expect(0, f"^docs: {html}$", "ci/run", "docs", "--")
        self.assertIn("PROJECT_NUMBER = 0.1.2\n", self.read("settings"))
        lines = [line for line in self.read("rules.md").splitlines() if line.startswith("-")]
        wanted = [f"- **S{number}** Rule {number} goes on." for number in range(1, 12)]
        self.assertEqual(lines, wanted)

    def fails(self, regex, **environment):
        text = self.expect(1, "^docs: Doxygen is not", "ci/run", "docs", "--", **environment)
        self.assert_line(text, regex)
        self.assertIn("<failure", self.read("ci-results/docs/doxygen.xml"))

    def test_a_warning_is_an_error(self):
        self.fails("^a note$", STATUS="1")

    def test_each_rule_is_stated_once(self):
        for text in (RULES.replace("//   S7 ", "//   T7 "), RULES + "//   S7 Again.\n//\n"):
            self.write("lib/perfring/ring/ring.h", text)
            self.fails("state S1 to S11 each once; found, of them, as a sentence: 1 2")

    def test_a_page_that_describes_nothing(self):
        self.program("doxygen", DOXYGEN.replace("PAGES", "index rules").replace("Detailed", "No"))
        self.fails("^no page md_DIVERGENCES$")
        self.fails("^the page of Ring does not describe it$")


CONTROL = "Maintainer: the perfring authors <change-this@packager.invalid>\n"
BUILDPACKAGE = """#!/bin/sh
cp -R . "$FOLDER/source"
touch ../perfring_0.1_amd64.deb ../libperfring-dev_0.1_amd64.deb ../perfring_0.1_amd64.changes
exit "${STATUS:-0}"
"""


class DebTest(support.Case):
    def setUp(self):
        super().setUp()
        self.program("git", "#!/bin/sh\nprintf 'lib/a.h\\0run\\0gone\\0'\n")
        self.program("dh", "#!/bin/sh\n")
        self.program("dpkg-parsechangelog", "#!/bin/sh\necho 0.1\n")
        self.program("dpkg-buildpackage", BUILDPACKAGE)
        self.write("lib/a.h", "// a\n")
        self.write("run", "#!/bin/sh\n", executable=True)
        for name in ("control", "changelog"):
            self.write(f"ci/packaging/debian/{name}", CONTROL)

    def test_the_packages(self):
        self.write("out/perfring_0.1_i386.deb", "old")
        last = "^deb: ./libperfring-dev_0.1_amd64.deb ./perfring_0.1_amd64.deb$"
        self.expect(0, last, "ci/run", "deb", "out")
        self.assertEqual(self.read("source/lib/a.h"), "// a\n")
        self.assertTrue(os.access(self.folder / "source/run", os.X_OK))
        self.assertEqual(self.read("source/debian/control"), CONTROL)
        self.assertTrue((self.folder / "out/perfring_0.1_amd64.changes").exists())

    def test_the_maintainer(self):
        names = {"DEBEMAIL": "a@b.c", "DEBFULLNAME": "A & B"}
        self.expect(0, "^deb: ", "ci/run", "deb", "out", **names)
        self.assertEqual(self.read("source/debian/changelog"), "Maintainer: A & B <a@b.c>\n")

    def test_a_build_that_fails(self):
        self.expect(7, "^", "ci/run", "deb", "out", STATUS="7")

    def test_a_missing_program(self):
        self.only_python()
        self.expect(2, "debhelper is not installed: run ci/setup deb$", "ci/run", "deb")


class PackageTest(support.Case):
    def test_subcommands(self):
        """CLI11 2.6 has the title in capitals."""
        for title in ("Subcommands", "SUBCOMMANDS"):
            text = (
                f"Usage\n\n{title}:\n  drain   Drains\n          more\n  sim     Runs\n\n  x  y\n"
            )
            self.assertEqual(debian_packages.subcommands(text), ["drain", "sim"])
        self.assertEqual(debian_packages.subcommands("Usage\n"), [])

    def test_repositories_of_the_other_workspace(self):
        """The libraries are perfring's own."""
        self.write(
            "WORKSPACE",
            'workspace(name = "w")\nlocal_repository(name = "a", path = "b/c")\n'
            'new_local_repository(name = "l", path = "/usr", build_file = "x")\n',
        )
        with mock.patch.object(another_workspace, "ROOT", self.folder):
            found = another_workspace.repositories()
        self.assertEqual(found, [f"local_repository(name = 'a', path = '{self.folder}/b/c')"])

    def test_a_check_is_a_case(self):
        def holds(log, text):
            self.assertEqual(log.output("echo", text), f"{text}\n")

        def fails(log):
            log.run("sh", "-c", "for i in $(seq 99); do echo line $i; done; exit 3")

        def lacks(log):
            log.run("no-such-program")

        quiet = contextlib.redirect_stdout(io.StringIO())
        with quiet, support.results_in(self.folder / "results"):
            self.assertTrue(checks.check("job", "it holds", holds, "text"))
            self.assertFalse(checks.check("job", "it fails", fails))
            self.assertFalse(checks.check("job", "it lacks", lacks))
        self.assertNotIn("<failure", self.read("results/job/it_holds.xml"))
        text = self.read("results/job/it_fails.xml")
        self.assertIn("line 99\nsh ended with exit code 3", text)
        self.assertNotIn("line 50\n", text)
        self.assertIn("no-such-program", self.read("results/job/it_lacks.xml"))


class StatesTest(support.Case):
    def test_a_command_within_a_state(self):
        command = ["sh", "-c", 'echo "$LC_ALL ${HOME-none}"']
        self.expect(0, "^C /x$", "ci/run", "states", "--within", "c-locale", *command, HOME="/x")
        self.expect(0, " none$", "ci/run", "states", "--within", "no-home", *command)


AQUERY = """#!/bin/sh
case $1 in
  info) echo /root ;;
  *) echo '{"actions": [
      {"arguments": ["g++", "-Ibazel-out/k8/bin/lib/perfring/_virtual_includes/ring", "a.cc"]},
      {"arguments": ["g++", "b.cc"]}]}' ;;
esac
exit "${STATUS:-0}"
"""


class CompileCommandsTest(support.Case):
    def test_each_source_has_an_entry(self):
        self.program("bazel", AQUERY)
        self.write("a.cc", "")
        self.expect(0, "^compile_commands.json: 1 files$", "ci/run", "compile_commands")
        (entry,) = json.loads(self.read("compile_commands.json"))
        compiler, headers, source = entry["arguments"]
        self.assertEqual((compiler, source), ("g++", "a.cc"))
        self.assertEqual(headers, f"-I{pathlib.Path(entry['file']).parent}/lib")
        last = "^ci/run compile_commands: bazel aquery failed: see above$"
        self.expect(2, last, "ci/run", "compile_commands", STATUS="1")


class FleetTest(support.Case):
    def test_a_violation_ends_the_simulations(self):
        self.program("bazel", '#!/bin/sh\necho "$*" >>"$FOLDER/bazels"\n')
        self.program("git", "#!/bin/sh\necho v1\n")
        program = self.write(
            "bazel-bin/harness/cli/perfring",
            '#!/bin/sh\necho "$PERFRING_COMMIT $*" >>"$FOLDER/calls"\n'
            'mkdir "$FOLDER/first" 2>/dev/null && sleep 1 && exit 3\n'
            'echo $$ >>"$FOLDER/pids"\nexec sleep 60 >/dev/null 2>&1\n',
            executable=True,
        )
        self.assertTrue(program.exists())
        self.expect(3, "^", "ci/run", "fleet", "--simulate", "1", CI="1")
        self.assertRegex(self.read("bazels"), r"^build .*--config=ci --config=opt //:perfring\n$")
        self.assertRegex(self.read("calls"), r"^v1 sim --runs 10000 --seed \d{19}\n")
        others = self.folder / "pids"  # none on a machine with one processor
        for pid in others.read_text(encoding="utf-8").split() if others.exists() else ():
            with self.assertRaises(ProcessLookupError, msg="a simulation goes on"):
                os.kill(int(pid), 0)


@unittest.skipUnless(os.geteuid() == 0, "the job distro is for root")
class DistroTest(support.Case):
    def setUp(self):
        super().setUp()
        for name in ("debootstrap", "git", "unshare"):
            self.program(
                name,
                f'#!/bin/sh\necho "{name} $*" >>"$FOLDER/calls"\n'
                f'[ {name} != debootstrap ] || mkdir -p "$4/etc"\n'
                f'[ {name} != unshare ] || exit "${{STATUS:-0}}"\n',
            )
        self.environment |= {"PERFRING_DISTRO": "roots", "PERFRING_MIRROR": "http://mirror/debian"}

    def test_readmes_commands(self):
        self.expect(0, "^ci/run distro: making .*/roots/sid$", "ci/run", "distro", "sid")
        text = self.read("calls")
        root = self.folder / "roots/sid"
        wanted = f"git,procps sid {root} http://mirror/debian\ngit clone -q --no-checkout . {root}"
        self.assertIn(wanted, text)
        self.assertTrue(
            text.endswith("bash -c ci/setup && bazel run //:perfring && ci/run default\n"), text
        )

    def test_another_command(self):
        self.write("roots/sid.complete", "")
        self.write("roots/sid/etc/x", "")
        self.expect(9, "^$", "ci/run", "distro", "sid", "ls", "--help", STATUS="9")
        text = self.read("calls")
        self.assertTrue(text.endswith(f"inside {self.folder}/roots/sid ls --help\n"), text)
        self.assertNotIn("debootstrap", text)

    def test_one_process_at_a_time(self):
        with open(self.write("roots/sid.lock", ""), encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            last = "^ci/run distro: another ci/run distro is at work in .*/roots/sid$"
            self.expect(2, last, "ci/run", "distro", "sid")


CONFORM = """#!/bin/sh
echo "$*" >>"$FOLDER/calls"
echo '{}'
exit "${STATUS:-0}"
"""
TABLE = """import os, sys
if sys.argv[1] != "--known":
    for ending in "md", "svg":
        with open(sys.argv[1] + "/results." + ending, "w") as file:
            file.write("the " + ending)
    sys.exit(int(os.environ.get("TABLE", 0)) if len(sys.argv) > 2 else 0)
"""


class ConformTest(support.Case):
    """The subjects are not built."""

    def setUp(self):
        super().setUp()
        program = self.write("perfring", CONFORM, executable=True)
        results = self.folder / "results"
        self.enterContext(support.results_in(results))
        for name, value in {
            "ROOT": self.folder,
            "PERFRING": program,
            "TABLE": self.write("table.py", TABLE),
            "CHECKED_IN": self.write("RESULTS.md", ""),
            "PICTURE": self.write("consumers.svg", ""),
            "require_all": lambda: None,
        }.items():
            self.enterContext(mock.patch.object(conform, name, value))
        subjects = conform.conform_subjects
        self.enterContext(mock.patch.object(subjects, "build", lambda results: None))
        self.enterContext(mock.patch.object(subjects, "subject", lambda *_: ("1", ["--", "x"])))
        self.enterContext(mock.patch.dict(os.environ, self.environment))

    def conform(self, *arguments, **environment):
        """Returns the exit code, and what each subject was."""
        with mock.patch.dict(os.environ, environment), mock.patch("builtins.print"):
            status = conform.main(list(arguments))
        lines = self.read("results/conform/subjects").splitlines()
        return status, [tuple(line.split("\t")) for line in lines]

    def test_all_peers(self):
        status, subjects = self.conform("--check")
        self.assertEqual((status, [each[0] for each in subjects]), (0, list(conform.PEERS)))
        self.assertEqual(self.conform(TABLE="1")[0], 1)

    def test_named_peers(self):
        status, subjects = self.conform("--peer", "bcc", "--peer", "libbpf", "--live")
        self.assertEqual(subjects, [("libbpf", "1", "-- x"), ("bcc", "1", "-- x")])
        self.assertEqual(self.read("calls").count("conform --json --live -- x\n"), 2)

    def test_a_subject_of_ones_own(self):
        arguments = ["--peer", "perfring", "--subject", "mine=prog -m {pages}"]
        status, subjects = self.conform(*arguments, STATUS="3", TABLE="1")
        self.assertEqual((status, subjects[-1]), (3, ("mine", "", "-- prog -m {pages}")))

    def test_what_cannot_be_run(self):
        with self.assertRaisesRegex(conform.usage.Unusable, "perfring cannot be run$"):
            self.conform(STATUS="2")

    def test_update(self):
        self.assertEqual(self.conform("--check")[0], 0)
        self.assertEqual((self.read("RESULTS.md"), self.read("consumers.svg")), ("", ""))
        self.assertEqual(self.conform("--update", TABLE="1")[0], 0)
        self.assertEqual(
            (self.read("RESULTS.md"), self.read("consumers.svg")), ("the md", "the svg")
        )
