"""Finds tests that pass although the code does nothing (nothing.toml): 6 minutes.

Makes consumers, explorers, judges and parsers do nothing, one at a time, and finds the test cases
of their packages that still pass. Such a case cannot fail even if nothing happens.

Patches and builds a copy of the checkout, and runs each test case alone. A case that takes more
than --limit seconds of processor time fails. In the first run the unit ends the process: a case
that passes never reaches the unit, and is ignored. In the second run the unit does nothing: the
cases that pass are compared with ci/nothing.toml, which lists each with a reason. One more or one
less is an error.

Exit codes: 0 as listed, 1 not as listed, 2 usage or environment (a patch that does not apply, a
build that fails).
"""
import ast
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import tomllib

from jobs import bazel, processes, usage
from jobs.checkout import ROOT

CATALOGUE = "ci/nothing.toml"
WORKSPACE = "perfring"  # the workspace's folder in a test's runfiles
TOUCHED = "PERFRING_NOTHING_ENDS"  # environment variable: a process that reaches the unit ends
CLOCK = 12  # wall-clock limit of a case, as a multiple of its processor time (for loaded machines)
MEMORY_MAX = 8 << 30  # of a case: a unit that does nothing may make its callers loop forever


def read_catalogue(root):
    with open(root / CATALOGUE, "rb") as file:
        return tomllib.load(file)


def edits(name, unit):
    """Yields each edit of the unit: the file, the text to find, and the code to insert after it."""
    for edit in unit["edits"]:
        if set(edit) != {"file", "after", "nothing"}:
            raise usage.Unusable(f"{CATALOGUE}: {name}: an edit has file, after and nothing")
        yield edit["file"], edit["after"].strip("\n"), edit["nothing"]


def patched(root, name, unit):
    """Returns the original and the patched text of the unit's files, by path."""
    texts = {}
    for file, after, nothing in edits(name, unit):
        path = root / file
        if not path.is_file():
            raise usage.Unusable(f"{CATALOGUE}: {name}: there is no {file}")
        if path not in texts:
            before = path.read_text(encoding="utf-8")
            texts[path] = (before, "#include <stdlib.h>\n" + before)
        before, now = texts[path]
        if before.count(after) != 1:
            raise usage.Unusable(
                f"{CATALOGUE}: {name}: the patch does not apply: {file} has this "
                f"{before.count(after)} times, and not once:\n{after}"
            )
        ends = f'if (::getenv("{TOUCHED}") != nullptr) __builtin_trap();'
        texts[path] = (before, now.replace(after, f"{after}\n{ends}\n{nothing}\n"))
    return texts


def listed(name, unit):
    """Returns the reasons of the cases that may stay green, by case."""
    reasons = {}
    for reason, of_reason in unit.get("green", {}).items():
        for case in of_reason:
            if case in reasons:
                raise usage.Unusable(f"{CATALOGUE}: {name}: {case} is listed twice")
            reasons[case] = reason
    return reasons


def suite_and_case(full):
    """Returns RingTest and Drains for Words/RingTest.Drains/A and for RingTest/0.Drains."""
    suite, _, case = full.partition(".")
    parts = suite.split("/")
    return next((part for part in parts if part.endswith("Test")), parts[-1]), case.split("/")[0]


def folders(unit):
    return sorted({test.partition(":")[0].removeprefix("//") for test in unit["tests"]})


def check(root, catalogue):
    """Checks the catalogue without building anything. Returns the errors."""
    wrong = []
    texts = {}
    for name, unit in catalogue.items():
        try:
            patched(root, name, unit)
            reasons = listed(name, unit)
        except usage.Unusable as error:
            wrong.append(str(error))
            continue
        for folder in folders(unit):
            if folder not in texts:
                sources = sorted((root / folder).glob("*_test.cc"))
                texts[folder] = " ".join(each.read_text(encoding="utf-8") for each in sources)
        wanted = {case: suite_and_case(case) for case in reasons}
        wanted.update({suite: (suite, r"\w+") for suite in unit.get("suites", [])})
        for named, (suite, case) in wanted.items():
            pattern = rf"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*{suite}\s*,\s*{case}\s*\)"
            if not any(re.search(pattern, texts[folder]) for folder in folders(unit)):
                wrong.append(
                    f"{CATALOGUE}: {name}: there is no test {named} in {', '.join(folders(unit))}"
                )
    return wrong


def copy_checkout(to):
    """Copies git's tracked files and new ones."""
    listing = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout.decode()
    for name in filter(None, listing.split("\0")):
        if not (ROOT / name).exists():
            continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


class Copy:
    """A copy of the checkout, and its Bazel output."""

    def __init__(self, folder):
        self.folder = folder
        self.root = folder / "checkout"
        self.root.mkdir()
        copy_checkout(self.root)

    def bazel(self, command, *arguments, quiet=False):
        return processes.run(
            ["bazel", f"--output_base={self.folder / 'base'}", command, *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
        )

    def build(self, name, tests):
        if self.bazel("build", *bazel.OPTIONS, "--", *tests).returncode != 0:
            raise usage.Unusable(f"{name}: the replacement that does nothing does not compile")

    def environment(self, test):
        """Returns the environment variables that the test's rule sets."""
        rule = self.bazel("query", "--noshow_progress", "--output=build", test, quiet=True).stdout
        found = re.search(r"^ *env = (\{.*\}),$", rule, re.MULTILINE)
        package = test.partition(":")[0].removeprefix("//")

        def path_of(label):
            label = label.group(1)
            return (
                f"{package}/{label.lstrip(':')}"
                if not label.startswith("//")
                else label.removeprefix("//").replace(":", "/")
            )

        given = ast.literal_eval(found.group(1)) if found else {}
        return {
            key: re.sub(r"\$\(rootpath ([^)]+)\)", path_of, value) for key, value in given.items()
        }

    def close(self):
        self.bazel("shutdown", quiet=True)


class Runner:
    """Runs the test cases of one program, each alone."""

    running = set()  # the processes of all runners
    over = False  # no more are to be started

    def __init__(self, copy, test, limit):
        package, _, name = test.removeprefix("//").partition(":")
        self.binary = copy.root / "bazel-bin" / package / name
        self.files = pathlib.Path(f"{self.binary}.runfiles") / WORKSPACE
        self.own = copy.environment(test)
        self.limit = limit

    def names(self):
        listing = self.run(["--gtest_list_tests"])[1]
        suite = ""
        for line in listing.splitlines():
            line = line.partition("#")[0].rstrip()
            if line.startswith("  "):
                if not line.lstrip().startswith("DISABLED_"):
                    yield suite + line.strip()
            elif line.endswith("."):
                suite = line

    def run(self, arguments, **environment):
        """Returns the exit code, or None if it took too long; and the output."""
        if self.over:
            return None, ""
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": folder,
                "TEST_TMPDIR": folder,
                "TEST_SRCDIR": str(self.files.parent),
                "TEST_WORKSPACE": WORKSPACE,
                **self.own,
                **environment,
            }
            process = subprocess.Popen(
                [self.binary, *arguments],
                cwd=self.files,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: confine(self.limit),
            )
            self.running.add(process)
            try:
                out, _ = process.communicate(timeout=self.limit * CLOCK)
                return process.returncode, out.decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return None, ""
            finally:
                self.running.discard(process)

    @classmethod
    def end_all(cls):
        cls.over = True
        for process in list(cls.running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def outcome(self, name):
        """Returns "untouched" if the case never reaches the unit, else "green", "red" or "skipped"."""
        filter_ = [f"--gtest_filter={name}"]
        code, out = self.run(filter_, **{TOUCHED: "1"})
        if code == 0:
            return "skipped" if "[  SKIPPED ]" in out else "untouched"
        code, out = self.run([*filter_, "--gtest_break_on_failure"])  # one failure is enough
        if code == 0 and "[  SKIPPED ]" in out:
            return "skipped"
        return "green" if code == 0 and "[  PASSED  ] 1 test." in out else "red"


def confine(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcomes(copy, name, unit, limit):
    """Returns the outcome of each test case of the unit's tests, by its full name."""
    texts = patched(copy.root, name, unit)
    try:
        for path, (_, nothing) in texts.items():
            path.write_text(nothing, encoding="utf-8")
        copy.build(name, unit["tests"])
        runners = [Runner(copy, test, limit) for test in unit["tests"]]
        each = [
            (runner, case)
            for runner in runners
            for case in runner.names()
            if suite_and_case(case)[0] in unit.get("suites", [suite_and_case(case)[0]])
        ]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda one: one[0].outcome(one[1]), each)
            try:
                return {case: outcome for (_, case), outcome in zip(each, found)}
            except BaseException:  # a signal: the pool would wait for them
                found.close()
                Runner.end_all()
                raise
    finally:
        for path, (before, _) in texts.items():
            path.write_text(before, encoding="utf-8")


def by_case(of):
    """Returns the green and the skipped cases. A case with parameters is listed by its name alone if
    no instance is red."""
    instances = collections.defaultdict(list)
    for full, outcome in of.items():
        instances[".".join(suite_and_case(full))].append((full, outcome))
    green, skipped = set(), set()
    for case, each in instances.items():
        kinds = {outcome for _, outcome in each}
        if "green" in kinds:
            green.update(
                [case]
                if "red" not in kinds
                else [full for full, outcome in each if outcome == "green"]
            )
        if "skipped" in kinds:
            skipped.update([case, *(full for full, outcome in each if outcome == "skipped")])
    return green, skipped


def compare(name, unit, of):
    """Returns the differences from the list."""
    count = collections.Counter(of.values())
    print(
        f"{name}: {count['red']} cases fail, {count['green']} pass all the same, {count['untouched']} "
        f"never come to it, {count['skipped']} are skipped",
        flush=True,
    )
    green, skipped = by_case(of)
    reasons = listed(name, unit)
    differs = [
        f"{name}: {case} passes though nothing is done: have it count what happens, or give the "
        f"reason in {CATALOGUE}"
        for case in sorted(green - set(reasons))
    ]
    differs += [
        f"{name}: {case} is listed in {CATALOGUE}, and no longer passes where nothing is done"
        for case in sorted(set(reasons) - green - skipped)
    ]
    if count["red"] == 0:
        differs.append(f"{name}: no case fails")
    return differs


def run(catalogue, names, limit):
    differs = []
    with tempfile.TemporaryDirectory(
        prefix="perfring-nothing-", ignore_cleanup_errors=True
    ) as folder:
        copy = Copy(pathlib.Path(folder))
        try:
            for name in names:
                of = outcomes(copy, name, catalogue[name], limit)
                found = compare(name, catalogue[name], of)
                print("".join(f"{each}\n" for each in found), end="", flush=True)
                differs += found
        finally:
            copy.close()
            if (copy.folder / "base").exists():  # some of its files are read-only
                subprocess.run(["chmod", "-R", "u+w", copy.folder / "base"], check=False)
    return differs


def main(command_line):
    parser = usage.Parser("nothing", __doc__)
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"of the units in {CATALOGUE} [all of them]"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=5,
        metavar="SECONDS",
        help="of processor time, for a case [5]",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only check that each patch applies and that each listed case exists",
    )
    options = parser.parse_args(command_line)
    catalogue = read_catalogue(ROOT)
    parser.check_names(options.names, catalogue, "a unit")
    if options.check and options.names:
        parser.error("--check: takes no names")
    names = options.names or list(catalogue)
    if options.check:
        differs = check(ROOT, catalogue)
        print("".join(f"{each}\n" for each in differs), end="")
    else:
        differs = run(catalogue, names, options.limit)
    print(f"{len(names)} units, {len(differs)} differences from {CATALOGUE}")
    return 1 if differs else 0
