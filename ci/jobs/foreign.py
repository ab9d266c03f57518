"""The live tests on Debian's kernels of other architectures, in qemu.

Boots a kernel with the tests as its only program, and reports the results. A guest is named ARCH;
or ARCH-on-ARCH, for programs of one architecture on the kernel of another; or ARCH-SUITE, for the
kernel of another Debian release. `all` is every guest. TEST is a filter for --gtest_filter; without
TEST the long tests are left out. Ends with a table in Markdown.
Exit codes: 0 all passed, 1 something failed, 2 usage or environment.
"""
import fnmatch
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import typing
import xml.etree.ElementTree as ElementTree

from jobs import bazel, cases, machines, processes, usage

KERNELS = pathlib.Path("/usr/local/lib/perfring/foreign")  # from ci/foreign_packages
# ConcurrencyTest's case waits after each of its records, which is slow on an emulated processor.
LONG = "FourGib*:TornLong*:ConcurrencyTest.AProducerThatWaitsLosesNothing"

# The programs of a guest.
PROGRAMS = {"init": "//harness/foreign:guest", "examples/probes": "//lib/examples:probes"}

COLUMNS = ("guest", "machine", "kernel", "bits", "order", "cpus", *cases.KINDS, "seconds")


class Machine(typing.NamedTuple):
    """The machine that a kernel is booted on."""

    emulator: str
    console: str  # the kernel's name of it
    serial: str = "-serial stdio"
    seconds: int = 480  # limit of the quick tests
    parameters: tuple = ()  # of the kernels


# By architecture. The kernel parameter no_timer_check: if qemu has to wait for a processor, 5.10 takes
# the timer for broken and panics. On ppc64el rings of 64 KiB pages take more seconds: some are filled
# 8192 times.
MACHINES = {
    name: Machine(**{key: value for key, value in machine.items() if key in Machine._fields})
    for name, machine in machines.PROCESSORS.items()
    if "emulator" in machine
}


class Guest(typing.NamedTuple):
    """A kernel, and the programs that it runs."""

    programs: str  # architecture of the programs
    machine: str
    kernel: str  # folder in KERNELS


# Each kernel has its own folder, so that it does not replace another one.
SUITES = machines.SUITES
GUESTS = (
    {name: Guest(name, name, name) for name in MACHINES}
    | {"i386-on-amd64": Guest("i386", "amd64", "amd64")}
    | {name: Guest(*[name.partition("-")[0]] * 2, name) for name in SUITES}
)
CI_GUESTS = ",".join(machines.CI)  # the default: 32 bits, and the other byte order


def require_all(guest):
    for program in (MACHINES[guest.machine].emulator.split()[0], "bazel", "cpio"):
        usage.require(program, "ci/setup cross")
    kernel_of(guest)


def kernel_of(guest):
    kernels = list((KERNELS / guest.kernel / "boot").glob("vmlinu*"))
    if not kernels:
        install = f"foreign_packages {guest.kernel}" if guest.kernel in SUITES else "setup cross"
        raise usage.Unusable(f"no kernel of {guest.kernel} in {KERNELS}: run ci/{install}")
    if len(kernels) != 1:
        raise usage.Unusable(f"{len(kernels)} kernels in {kernels[0].parent}: leave one")
    return kernels[0]


def build(architecture, bazel_options):
    """Builds a guest's programs and returns their folder. They keep their symbols, for uprobes."""
    flags = [f"--config={architecture}", "--linkopt=-Wl,--strip-debug", *bazel_options]
    if not bazel.build(*flags, *PROGRAMS.values()):
        raise usage.Unusable(
            f"//harness/foreign:guest does not build for {architecture};"
            " if its compiler or libraries are missing: run ci/setup cross"
        )
    found = processes.output(["bazel", "info", *flags, "bazel-bin"], stderr=subprocess.DEVNULL)
    return pathlib.Path(found.strip())


def initramfs(programs, path):
    """Writes a cpio archive of the programs and the files that they read."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("bin", "dev", "examples", "proc", "sys", "tmp"):
            (root / name).mkdir()
        for name, label in PROGRAMS.items():
            shutil.copy(programs / label.lstrip("/").replace(":", "/"), root / name)
            (root / name).chmod(0o755)
        (root / "bin/true").symlink_to("/init")
        names = "\n".join(str(each.relative_to(root)) for each in sorted(root.rglob("*")))
        with open(path, "wb") as archive:
            command = ["cpio", "--quiet", "-o", "-H", "newc"]
            processes.run(command, cwd=root, text_input=names, stdout=archive).check_returncode()


def boot(guest, archive, test_filter, limit, console):
    """Runs the guest to its end, with its console in a file. Returns None, or how it went wrong."""
    machine = MACHINES[guest.machine]
    words = [
        f"console={machine.console}",
        "quiet",
        "loglevel=1",
        "panic=-1",
        "rdinit=/init",
        *machine.parameters,
        f"perfring.flag=--gtest_filter={test_filter}",
    ]
    command = [
        *machine.emulator.split(),
        "-smp",
        "2",
        "-m",
        "1024",
        "-nographic",
        "-no-reboot",
        "-nodefaults",
        *machine.serial.split(),
        "-kernel",
        str(kernel_of(guest)),
        "-initrd",
        str(archive),
        "-append",
        " ".join(words),
    ]
    with open(console, "wb") as file:
        qemu = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        qemu.wait(limit)
    except subprocess.TimeoutExpired:
        return f"had not ended after {limit} s (--limit)"
    finally:
        qemu.kill()
        qemu.wait()
    if qemu.returncode != 0:
        return f"{command[0]} ended with exit code {qemu.returncode}"
    return None


def facts(console):
    """Returns the guest's description of itself, by key."""
    for line in console.splitlines():
        _, found, words = line.partition("guest: machine=")
        if found:  # a BIOS may have printed something before it
            return dict(word.split("=", 1) for word in f"machine={words}".split())
    return {}


def report(name, console, path):
    """Writes the JUnit report, with the names of guest and kernel. Returns its root, or None if the
    console has no complete report."""
    lines = [line[4:] for line in console.splitlines() if line.startswith("xml:")]
    try:
        root = ElementTree.fromstring("\n".join(lines))
    except ElementTree.ParseError:
        return None
    root.set("guest", name)
    root.set("kernel", facts(console).get("kernel", "?"))
    cases.save(path, root)
    return root


def report_of_failure(name, root, wrong, path):
    """Adds the guest itself as a failed test case to the JUnit report, which may not exist yet."""
    suites = ElementTree.Element("testsuites", name="AllTests") if root is None else root
    cases.add(suites, "guest", name, "failed", wrong)
    cases.save(path, suites)


def add_cases(row, root):
    """Counts a report's test cases, and adds their messages to the row's notes."""
    for case in root.iter("testcase"):
        kind, reason = cases.outcome(case)
        row[kind] += 1
        if kind != "passed":
            row["notes"].append(f"{kind} {cases.title(case)}: {reason[:400]}")
        for each in case.iter("property"):
            row["notes"].append(f"{cases.title(case)}: {each.get('name')}: {each.get('value')}")


def unmatched(tests, root):
    """Returns the filters that matched no test."""
    names = [] if root is None else [cases.title(case) for case in root.iter("testcase")]
    wanted = [each for test in tests for each in test.partition("-")[0].split(":") if each]
    return [each for each in wanted if not fnmatch.filter(names, each)]


def run(name, arguments):
    """Runs one guest. Returns its row of the table."""
    guest = GUESTS[name]
    programs = build(guest.programs, arguments.bazel)
    results = pathlib.Path(arguments.results)
    stem = cases.file_name("-".join([name, *arguments.tests, *["long"] * arguments.long]))
    junit = results / f"{stem}.xml"
    junit.unlink(missing_ok=True)  # left by another run
    archive = results / f"{stem}.cpio"
    initramfs(programs, archive)
    started = time.monotonic()
    console_file = results / f"{stem}.console"
    try:
        limit = arguments.limit or MACHINES[guest.machine].seconds
        wrong = boot(guest, archive, arguments.filter, limit, console_file)
    finally:
        archive.unlink()
    console = console_file.read_bytes().decode(errors="replace").replace("\r", "")
    row = {
        "guest": name,
        "seconds": round(time.monotonic() - started),
        "notes": [],
        **dict.fromkeys(cases.KINDS, 0),
        **facts(console),
    }
    root = report(name, console, junit)
    if root is not None:
        add_cases(row, root)
    elif wrong is None:
        wrong = "ended without a report"
    if wrong is None and row["failed"] == 0 and "guest: ended status=0" not in console:
        wrong = "did not end well, though no test failed"
    if wrong:
        tail = "\n".join(console.splitlines()[-25:])
        wrong = f"the guest {wrong}; its console ends with\n{tail}"
    elif row["passed"] + row["failed"] == 0:
        wrong = f"no test of this name ran: {arguments.filter}"
    elif idle := unmatched(arguments.tests, root):
        wrong = f"no test of this name ran: {' '.join(idle)}"
    if wrong:
        row["failed"] += 1
        row["notes"].append(wrong)
        report_of_failure(name, root, wrong, junit)
    return row


def parse(command_line):
    parser = usage.Parser("foreign", __doc__)
    parser.add_argument(
        "guests",
        metavar="GUEST",
        nargs="?",
        default=CI_GUESTS,
        help=f"all, or of: {', '.join(GUESTS)} [{CI_GUESTS}]",
    )
    parser.add_argument("tests", metavar="TEST", nargs="*", help="filters, such as 'FourGib*'")
    parser.add_argument("--long", action="store_true", help="the long tests too")
    parser.add_argument(
        "--limit",
        type=usage.number,
        metavar="SECONDS",
        help="for a guest [480, ppc64el 1200; with --long or TEST 1500]",
    )
    parser.add_argument(
        "--results",
        default=str(cases.RESULTS / "foreign"),
        metavar="FOLDER",
        help="for GUEST.console and GUEST.xml, its JUnit report; with TEST or "
        "--long, GUEST-TEST.xml [ci-results/foreign]",
    )
    usage.add_bazel(parser, "build")
    arguments = parser.parse_intermixed_args(command_line)
    names = list(GUESTS) if arguments.guests == "all" else arguments.guests.split(",")
    for name in names:
        if name not in GUESTS:
            parser.error(f"'{name}' is not a guest; choose from: all, {', '.join(GUESTS)}")
    for test in arguments.tests:
        if test in GUESTS:
            parser.error(f"'{test}' is a guest, not a TEST: give several as {names[0]},{test}")
        if not test or any(each.isspace() for each in test):  # it would end the kernel's parameter
            parser.error(f"'{test}' is not accepted as TEST: give each filter by itself")
    try:
        pathlib.Path(arguments.results).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--results {arguments.results}: {error.strerror}; give a folder")
    arguments.names = names
    arguments.filter = ":".join(arguments.tests) or ("*" if arguments.long else f"-{LONG}")
    if arguments.limit is None and (arguments.long or arguments.tests):
        arguments.limit = 1500
    return arguments


def main(command_line):
    arguments = parse(command_line)
    rows = []
    try:
        for name in arguments.names:
            require_all(GUESTS[name])
        for name in arguments.names:
            print(f"ci/run foreign: {name}", flush=True)
            rows.append(run(name, arguments))
            for note in rows[-1]["notes"]:
                print(f"  {note}", flush=True)
    except processes.Terminated:
        return 2
    except KeyboardInterrupt:
        print("ci/run foreign: interrupted", file=sys.stderr)
    print(cases.table(COLUMNS, rows))
    counts = cases.total(rows)
    print(f"foreign: {cases.line(counts)}")
    return 1 if counts["failed"] or len(rows) != len(arguments.names) else 0
