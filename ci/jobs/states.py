"""`bazel test //...` as root, as a user, under seccomp, ...: hours.

Goes through the states that a machine may be in, one row of STATES after another. Only the tests
run in the state, by --run_under; Bazel and its builds do not. Needs root. A state that this machine
cannot have is skipped, with the reason. Ends with a table of the states.

Exit codes: 0 all passed or were skipped, 1 a test failed, 2 usage or environment.
"""
import ctypes
import os
import pathlib
import pwd
import struct
import subprocess
import sys
import tempfile

from jobs import cases, test_job, usage
from jobs.checkout import ROOT

PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
NOBODY = 65534


def user(*capabilities):
    names = ",".join("+" + name for name in capabilities)
    more = (
        [f"--inh-caps=-all,{names}", f"--ambient-caps={names}"]
        if capabilities
        else ["--inh-caps=-all"]
    )
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *more, "--"]


# What Docker leaves to root.
CONTAINER = (
    "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,"
    "+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"
)


def mounted(commands):
    return [
        "unshare",
        "--mount",
        "--propagation=private",
        "sh",
        "-c",
        f'{commands}; exec "$@"',
        "sh",
    ]


def clocks(seconds):
    return ["unshare", "--time", f"--boottime={seconds}", f"--monotonic={seconds}", "--fork"]


# Runs the test in a cgroup (v2) with these limits.
def limited(limits):
    writes = "; ".join(f"echo {value} >$group/{name}" for name, value in limits.items())
    return [
        "sh",
        "-c",
        f"group=$(mktemp -d $0/perfring.XXXXXX); {writes}; echo $$ >$group/cgroup.procs; "
        'exec "$@"',
        str(cgroups() or "/sys/fs/cgroup"),
    ]


def cgroups():
    """Returns the folder where cgroup v2 is mounted with controllers, or None."""
    for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "cgroup2" and pathlib.Path(folder, "cgroup.controllers").read_text(
            encoding="utf-8"
        ):
            return pathlib.Path(folder)
    return None


TRACEFS = "mount -t tracefs tracefs /sys/kernel/tracing; mount -t debugfs debugfs /sys/kernel/debug"
NO_TRACEFS = "umount -l /sys/kernel/debug/tracing /sys/kernel/tracing /sys/kernel/debug 2>/dev/null"
# {name: the words before a test's command line, and other changes}
STATES = {
    "root": {},
    "user": {"before": user()},
    "perfmon": {"before": user("perfmon")},
    "bpf": {"before": user("bpf")},
    "tracefs": {"before": mounted(TRACEFS)},
    "no-tracefs": {"before": mounted(NO_TRACEFS)},
    **{f"paranoid-{level}": {"before": user(), "paranoid": level} for level in (-1, 0, 1, 2, 3, 4)},
    "no-sys": {"before": mounted("umount -q -l /sys || mount -t tmpfs tmpfs /sys")},
    # The shell is the namespace's init: it is the parent of orphans, not the test.
    "pid-namespace": {
        "before": ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        + ["sh", "-c", '"$@"; exit $?', "sh"]
    },
    "user-namespace": {"before": ["unshare", "--map-root-user", "--net"]},
    "time-ahead": {"before": clocks(1_000_000)},
    "time-behind": {"before": clocks(-60)},
    "little-memory": {"before": limited({"memory.max": "512M"}), "needs": cgroups},
    "few-processes": {"before": limited({"pids.max": "200"}), "needs": cgroups},
    "seccomp": {"filter": True},
    "container": {
        "before": ["setpriv", f"--bounding-set={CONTAINER}", "--"],
        "filter": True,
    },
    "c-locale": {"environment": {"LC_ALL": "C"}},
    "decimal-commas": {"environment": {"LC_ALL": "de_DE.UTF-8"}, "locale": "de_DE"},
    "no-home": {"environment": {"HOME": None}},
    "load": {"load": 10},
}


def refuse_calls():
    """Installs a container's filter: perf_event_open(2) and bpf(2) fail with EPERM from now on."""
    numbers = {"x86_64": (298, 321), "aarch64": (241, 280)}[os.uname().machine]
    load, equal, give = 0x20, 0x15, 0x06
    program = [
        (load, 0, 0, 0),
        (equal, 1, 0, numbers[0]),
        (equal, 0, 1, numbers[1]),
        (give, 0, 0, 0x00050001),
        (give, 0, 0, 0x7FFF0000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    descriptor = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, descriptor, 0, 0) != 0:
        sys.exit(f"ci/run states: seccomp: {os.strerror(ctypes.get_errno())}")


def let_in(output):
    """Lets another user write the test's outputs. Returns the words to put before the command line
    so that it gets past a home folder that the user may not enter."""
    for name in ("TEST_TMPDIR", "TEST_UNDECLARED_OUTPUTS_DIR"):
        if name in os.environ:
            os.chmod(os.environ[name], 0o777)
    for name in ("XML_OUTPUT_FILE", "TEST_SHARD_STATUS_FILE", "TEST_PREMATURE_EXIT_FILE"):
        if name in os.environ:
            os.chmod(os.path.dirname(os.environ[name]), 0o777)
    home = pwd.getpwuid(os.geteuid()).pw_dir
    if not output.startswith(home + "/") or os.stat(home).st_mode & 1:
        return []
    kept = f"{home}/.cache"
    return mounted(
        f"aside=$(mktemp -d) && mount --bind {kept} $aside && mount -t tmpfs -o mode=755 tmpfs {home} "
        f"&& mkdir {kept} && mount --move $aside {kept} && cd {os.getcwd()}"
    )


def run_within(name, command):
    """Replaces this process by the command, in the given state."""
    state = STATES[name]
    before = state.get("before", [])
    if before[:1] == ["setpriv"]:
        before = let_in(os.environ.get("TEST_SRCDIR", "")) + before
    for variable, value in state.get("environment", {}).items():
        os.environ.pop(variable, None)
        if value is not None:
            os.environ[variable] = value
    if state.get("filter"):
        refuse_calls()
    whole = [*before, *command]
    os.execvp(whole[0], whole)


def prepare(state, folder):
    """Brings the machine into the state, except for what each test's process does itself. Returns
    None, or the reason if it cannot."""
    if "needs" in state and state["needs"]() is None:
        return "cgroup v2 has no controllers here"
    if "locale" in state:
        locale = f"{folder}/{state['locale']}.UTF-8"
        command = ["localedef", "-i", state["locale"], "-f", "UTF-8", locale]
        if subprocess.run(command, capture_output=True).returncode != 0:
            return f"localedef cannot make {state['locale']}: is the package locales installed?"
    if "paranoid" in state:
        PARANOID.write_text(str(state["paranoid"]), encoding="utf-8")
        if int(PARANOID.read_text(encoding="utf-8")) != state["paranoid"]:
            return f"the kernel takes no perf_event_paranoid of {state['paranoid']}"
    return None


def run(name, targets):
    """Runs the tests in one state. Returns its row of the table."""
    state = STATES[name]
    job = f"state-{name}"
    paranoid = PARANOID.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        busy = []
        try:
            why = prepare(state, folder)
            if why is not None:
                return [name, "skipped", why]
            busy = [
                subprocess.Popen([sys.executable, "-c", "while True: pass"])
                for _ in range(state.get("load", 0))
            ]
            flags = [f"--run_under={ROOT}/ci/run states --within {name}"]
            if "locale" in state:
                flags.append(f"--test_env=LOCPATH={folder}")
            status = test_job.test(job, flags, targets)
        finally:
            for each in busy:
                each.kill()
                each.wait()
            PARANOID.write_text(paranoid, encoding="utf-8")
    counts = cases.count(cases.RESULTS / job)
    return [name, "as it should be" if status == 0 else "FAILED", cases.line(counts)]


def parse(command_line):
    parser = usage.Parser("states", __doc__)
    parser.add_argument("states", metavar="STATE", nargs="*", help=f"of {', '.join(STATES)} [all]")
    parser.add_argument(
        "--target", action="append", metavar="TARGET", help="a test [//...]; repeatable"
    )
    arguments = parser.parse_args(command_line)
    parser.check_names(arguments.states, STATES, "a state")
    return arguments


def main(command_line):
    if command_line[:1] == ["--within"] and len(command_line) > 2 and command_line[1] in STATES:
        run_within(command_line[1], command_line[2:])
    arguments = parse(command_line)
    if os.geteuid() != 0:
        raise usage.Unusable("to change a machine's state takes root")
    rows = [run(name, arguments.target or ["//..."]) for name in arguments.states or STATES]
    for name, verdict, text in rows:
        print(f"{name.ljust(16)}{verdict.ljust(17)}{text}")
    return 1 if any(verdict == "FAILED" for _, verdict, _ in rows) else 0
