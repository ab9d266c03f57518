"""--help changes nothing, and a wrong argument is refused before anything is done."""
import json
import re

import support
from jobs import catalogue

# Each command is in the table, with an argument that it does not accept.
REFUSED = """
.ci/run format x
.ci/run formats
.ci/run --x
ci/foreign_packages --cross
ci/foreign_packages x
ci/hooks/commit-msg
ci/hooks/pre-commit x
ci/oss-fuzz/build.sh x
ci/setup --cross
ci/setup cross x
ci/setup x
ci/tests/ci_test.py x
ci/tests/fuzz_test.py x
ci/run --x
ci/run formats
ci/run formats format
ci/run asan-ubsan --all EXTRA
ci/run asan-ubsan EXTRA
ci/run bench --runs 2
ci/run bench x
ci/run compile_commands x
ci/run conform x
ci/run conform --subject NAME
ci/run conform --peer nobody
ci/run conform --peer
ci/run conform --update --peer libbpf
ci/run configs --x
ci/run configs strictest
ci/run coverage x
ci/run cross mips
ci/run deb --x
ci/run deb a b
ci/run default EXTRA
ci/run default --config opt
ci/run default -- lib
ci/run default --config=opt --
ci/run distro
ci/run distro potato
ci/run docs x
ci/run fleet --fix
ci/run fleet --simulate 0
ci/run fleet --simulate 100
ci/run fleet --simulate
ci/run foreign mips
ci/run format --fix x
ci/run format x
ci/run format configs
ci/run fuzz hostile
ci/run fuzz --secondsx 1
ci/run includes --x
ci/run kernel_facts --kernel
ci/run kernel_facts nobody
ci/run nothing --check NAME
ci/run nothing --limit x
ci/run nothing nobody
ci/run package x
ci/run states Paris
ci/run states --target
ci/run test_job
ci/run test_job default EXTRA
ci/run test_job EXTRA! --config=opt
ci/run test_job name -- lib
ci/run tsan EXTRA
ci/run tsan -- //lib/...
""".split(
    "\n"
)
# Programs that a command could use.
PROGRAMS = (
    "apt-cache apt-get bazel clang-format-19 clang++-19 cmake cpio cp debootstrap doxygen dpkg "
    "dpkg-buildpackage dpkg-deb dpkg-query g++ git go make mkdir mktemp mv qemu-system-arm rm sudo "
    "tar touch unshare"
).split()


class ArgumentsTest(support.Case):
    def setUp(self):
        super().setUp()
        self.write("fuzz/options.ini", "[hostile_ring]\nmax_len = 77\n[planted_fault]\n")
        for program in PROGRAMS:
            self.program(program, f'#!/bin/sh\necho "{program} $*" >>"$FOLDER/started"\n')

    def answers(self, status, command):
        """Checks the exit code, and that the usage is the only output: of --help on stdout, of a
        wrong argument on stderr. Nothing else happens."""
        ended, out, err = self.run_command(*command)
        self.assertEqual(ended, status, f"{command}: {out}{err}")
        usage, other = (out, err) if status == 0 else (err, out)
        self.assertRegex(usage, "(?i)usage:", command)
        self.assertEqual(other, "", command)
        started = self.folder / "started"
        self.assertFalse(started.exists(), f"{command} has started {PROGRAMS}")
        self.assertFalse((self.folder / "ci-results").exists(), f"{command} has left results")

    def test_wrong_arguments_are_refused(self):
        for line in filter(None, REFUSED):
            with self.subTest(line):
                self.answers(2, line.split())

    def test_help(self):
        for command in sorted(self.commands()):
            for option in ("-h", "--help"):
                with self.subTest(command, option=option):
                    self.answers(0, [*command.split(), option])

    def commands(self):
        """Returns each program of ci, and each command of ci/run."""
        programs = {
            str(path.relative_to(self.folder))
            for path in (self.folder / "ci").rglob("*")
            if path.is_file() and path.stat().st_mode & 0o111
        }
        programs = {name for name in programs if not re.match("ci/(bazel|packaging)/", name)}
        names = (*catalogue.JOBS, *catalogue.OTHERS)
        return {".ci/run", *programs, *(f"ci/run {name}" for name in names)}

    def test_each_command_is_in_the_table(self):
        for command in self.commands():
            self.assertTrue(any(f"{line} ".startswith(f"{command} ") for line in REFUSED), command)

    def test_help_lists_each_command_once_ci_first(self):
        _, out, _ = self.run_command("ci/run", "--help")
        listed = re.findall(r"^  ([\w-]+)  +\S", out, re.MULTILINE)
        self.assertEqual(listed, [*catalogue.JOBS, *catalogue.OTHERS])
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_an_unknown_name_lists_all_names(self):
        _, _, err = self.run_command("ci/run", "formats")
        for name in (*catalogue.JOBS, *catalogue.OTHERS):
            self.assertRegex(err, rf"\b{name}\b")

    def test_what_is_accepted_is_named(self):
        run = "ci/run"
        hostile = "'hostile' is not a target; choose from: hostile_ring, planted_fault"
        self.expect(2, hostile, run, "fuzz", "hostile")
        minus = "'-1' is not accepted|expected one argument"
        self.expect(2, minus, run, "fuzz", "--seconds", "-1")
        whole = "'1e3' is not accepted: give a whole number"
        self.expect(2, whole, run, "fuzz", "--seconds", "1e3")
        self.expect(2, "'0' is not accepted", run, "fuzz", "--jobs", "0")
        whole = "'0' is not accepted: give a whole number"
        self.expect(2, whole, run, "foreign", "armhf", "--limit", "0")
        processors = json.loads(self.read("ci/machines.json"))["processors"]
        kernels = ", ".join(name for name, of in processors.items() if "kernel" in of)
        guests = f"'mips' is not a guest; choose from: all, {kernels}, i386-on"
        self.expect(2, guests, run, "foreign", "mips")
        architectures = ", ".join(name for name in kernels.split(", ") if name != "amd64")
        architectures = f"'mips' is not an architecture; choose from: {architectures}"
        self.expect(2, architectures, run, "cross", "mips")

    def test_a_missing_program_has_a_setup_hint(self):
        self.only_python()
        qemu = "qemu-system-arm is not installed: run ci/setup cross"
        self.expect(2, qemu, "ci/run", "foreign", "armhf")
        bazel = "bazel is not installed: run ci/setup"
        self.expect(2, bazel, "ci/run", "cross", "armhf")
        for name in ("configs", "compile_commands"):
            self.expect(2, bazel, "ci/run", name)
        self.expect(2, bazel, "ci/run", "bench", "--runs", "3")
        self.expect(2, bazel, "ci/run", "fuzz", "hostile_ring")
        self.expect(2, bazel, "ci/run", "default", "--config=opt")


class ReadmeTest(support.Case):
    def rows(self, title):
        """Returns the names in the first column of a table in ci/README.md."""
        text = self.read("ci/README.md")
        table = re.search(rf"^\| {title} \|.*\n\|-.*\n((?:\|.*\n)+)", text, re.MULTILINE)
        self.assertTrue(table, f"no table of {title}")
        cells = [line.split("|")[1] for line in table[1].splitlines()]
        return [re.search(r"`([\w-]+)", cell)[1] for cell in cells]

    def test_the_table_of_jobs_has_the_jobs(self):
        self.assertEqual(self.rows("job"), catalogue.JOBS)

    def test_the_table_of_other_commands_has_them(self):
        self.assertEqual(self.rows("other command"), catalogue.OTHERS)
