"""README's two commands, or another command, on another Debian; as root.

Runs them on the last commit of this checkout, in a root folder that debootstrap makes once. The
root has its own mount, PID and UTS namespaces, so that tests can mount, unshare and pivot in it,
and it has tracefs, cgroups and everything else that a machine with systemd mounts. Build results
stay for the next time.

PERFRING_DISTRO=FOLDER: where the roots are [~/.cache/perfring/distro]
PERFRING_MIRROR=URL: of Debian [http://deb.debian.org/debian]
Exit codes: 2 usage or environment, or the command's.
"""
import argparse
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

from jobs import processes, usage
from jobs.checkout import ROOT

SUITES = ("bullseye", "bookworm", "trixie", "sid")
README = ("bash", "-c", "ci/setup && bazel run //:perfring && ci/run default")
MIRROR = "http://deb.debian.org/debian"
INSIDE = """root=$1
shift
mount --make-rprivate / && mount --bind "$root" "$root" && cd "$root" || exit 2
mount -t proc proc proc && mount --rbind /dev dev && mount -t sysfs sysfs sys || exit 2
mount -t tmpfs tmpfs run && mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tracefs tracefs sys/kernel/tracing
mount -t debugfs debugfs sys/kernel/debug
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t bpf bpf sys/fs/bpf
mkdir -p host && pivot_root . host && umount -l /host && cd /perfring || exit 2
hostname perfring
trap 'exit 130' INT # the first process of a namespace ignores signals without a handler
env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
  LANG=C.UTF-8 ${TERM:+TERM="$TERM"} ${http_proxy:+http_proxy="$http_proxy"} "$@"
"""


def lock(path, root):
    """Returns the lock of a root. One process at a time: two would share its package database and
    Bazel's output."""
    file = open(path, "a", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise usage.Unusable(f"another ci/run distro is at work in {root}") from None
    return file


def bootstrap(suite, root, log):
    """Makes the root, if it is not yet complete."""
    complete = root.with_name(f"{suite}.complete")
    if complete.exists():
        return
    print(f"ci/run distro: making {root}", file=sys.stderr)
    if root.exists():
        shutil.rmtree(root)
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates,git,procps"]
    command += [suite, root, os.environ.get("PERFRING_MIRROR") or MIRROR]
    with open(log, "w", encoding="utf-8") as file:
        ended = processes.run(command, stdout=file, stderr=subprocess.STDOUT)
    if ended.returncode != 0:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        raise usage.Unusable("\n".join(["debootstrap failed:", *last]))
    complete.touch()


def check_out(to):
    """Checks out the last commit; build results of earlier commits stay."""
    commands = [
        ["git", "-C", to, "fetch", "-q", ROOT, "HEAD"],
        ["git", "-C", to, "checkout", "-q", "-f", "--detach", "FETCH_HEAD"],
        ["git", "-C", to, "clean", "-q", "-f", "-d"],
    ]
    if not (to / ".git").exists():
        commands.insert(0, ["git", "clone", "-q", "--no-checkout", ".", to])
    for command in commands:
        processes.run(command).check_returncode()


def parse(arguments):
    parser = usage.Parser("distro", __doc__)
    parser.add_argument("suite", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument(
        "command",
        metavar="COMMAND",
        nargs=argparse.REMAINDER,
        help="in the checkout, in place of README's two commands",
    )
    options = parser.parse_args(arguments)
    parser.check_names([options.suite], SUITES, "a suite")
    return options


def main(arguments):
    options = parse(arguments)
    if os.geteuid() != 0:
        raise usage.Unusable("a root can be made and entered by root only")
    if shutil.which("debootstrap") is None:
        processes.run(["ci/setup", "distro"]).check_returncode()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = ROOT / (os.environ.get("PERFRING_DISTRO") or cache / "perfring/distro")
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / options.suite
    with lock(folder / f"{options.suite}.lock", root):
        bootstrap(options.suite, root, folder / f"{options.suite}.log")
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        check_out(root / "perfring")
        unshare = ["unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child"]
        inside = ["bash", "-c", INSIDE, "inside", root, *(options.command or README)]
        return processes.exit_code(processes.run([*unshare, *inside]))
