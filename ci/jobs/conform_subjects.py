"""The consumers that the job conform runs: how they are built, and their options."""
import gzip
import os
import pathlib
import re
import shutil

from jobs import checkout, processes, usage
from jobs.checkout import ROOT

FOREIGN = pathlib.Path("/usr/local/lib/perfring/foreign/i386")  # from ci/foreign_packages
PERFRING = "bazel-bin/harness/cli/perfring"  # from ROOT on, as the other two
BUILT = "bazel-bin/harness/conformance"
ADAPTERS = "harness/conformance/adapters"
TARGETS = (
    "//harness/cli:perfring",
    "//harness/conformance:perfring_subject",
    "//harness/conformance:libbpf_subject",
)
PEERS = ("perfring perfring-i386 libbpf libbpf-i386 bpftool bcc cilium bpftrace perf-trace").split()
SETTINGS = "{pages} {wakeup_watermark} {wakeup_events} {sample_type} {sample_id_all}".split()
BPFTRACE = 'BEGIN { if (pid == 0) { printf("seq %llu sum %llx\\n", nsecs, nsecs); } }'
PERF_TRACE = "exec perf trace --no-syscalls -a -m {pages} -e bpf-output/no-inherit=1,name=evt/ 2>&1"


def with_sbin():
    """Returns the PATH of root, where some of Debian's programs are."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"


def build(results):
    """Builds the suite, and the subjects that are not installed, into the folder of results."""
    commands = [
        ["bazel", "build", *TARGETS],
        ["go", "build", "-o", results / "cilium", f"{ADAPTERS}/cilium.go"],
        # i386 programs run on an x86-64 kernel; cases that need a 32-bit kernel get a simulated
        # one.
        "i686-linux-gnu-gcc -static -g -O1 -isystem".split()
        + [FOREIGN / "usr/include", "-o", results / "libbpf-i386", f"{ADAPTERS}/libbpf.c"]
        + [f"-L{FOREIGN}/usr/lib/i386-linux-gnu", "-lbpf", "-lelf", "-lz"],
        "i686-linux-gnu-g++ -std=c++23 -static -O1 -Ilib".split()
        + ["-o", results / "perfring-i386", f"{ADAPTERS}/perfring.cc", *library_sources()],
    ]
    cache = results / "cache"
    go = {"GOPATH": "/usr/share/gocode", "GO111MODULE": "off", "GOCACHE": str(cache)}
    for command in commands:
        environment = {**os.environ, **go} if command[0] == "go" else None
        if processes.run(command, env=environment).returncode != 0:
            raise usage.Unusable(f"{command[0]} has failed: see above")
    shutil.rmtree(cache, ignore_errors=True)


def library_sources():
    """Returns the sources that a consumer of one ring needs."""
    return [
        source
        for pattern in ("lib/perfring/*.cc", "lib/perfring/os/*.cc")
        for source in sorted(ROOT.glob(pattern))
        if not source.name.endswith("_test.cc")
    ]


def version(package):
    """Returns the version of an installed package."""
    return processes.output(["dpkg-query", "-W", "-f=${Version}", package])


def foreign_version(package):
    """Returns the version of a package that ci/foreign_packages has unpacked."""
    with gzip.open(FOREIGN / f"usr/share/doc/{package}/changelog.Debian.gz", "rt") as changelog:
        return re.search(r"\((.*)\)", changelog.readline())[1]


def subject(name, results):
    """Returns the version of one of PEERS, and its options."""
    match name:
        case "perfring":
            return checkout.version(), ["--", f"{BUILT}/perfring_subject", *SETTINGS]
        case "perfring-i386":
            return checkout.version(), ["--", f"{results}/perfring-i386", *SETTINGS]
        case "libbpf":
            return version("libbpf1"), ["--", f"{BUILT}/libbpf_subject", "{pages}"]
        case "libbpf-i386":
            command = [f"{results}/libbpf-i386", "{pages}"]
            return foreign_version("libbpf-dev"), ["--", *command]
        case "bpftool":
            program = shutil.which("bpftool", path=with_sbin())
            command = [program, "-j", "map", "event_pipe", "id", "1"]
            return version("bpftool"), ["--reader", "bpftool", "--", *command]
        case "bcc":
            command = ["/usr/bin/python3", f"{ADAPTERS}/bcc.py", "{pages}"]
            return version("libbpfcc"), ["--", *command]
        case "cilium":
            command = [f"{results}/cilium", "{pages}", "{wakeup_watermark}"]
            return version("golang-github-cilium-ebpf-dev"), ["--", *command]
        case "bpftrace":
            command = ["/usr/bin/env", "BPFTRACE_PERF_RB_PAGES={pages}", "bpftrace", "-e", BPFTRACE]
            return version("bpftrace"), ["--reader", "bpftrace", "--", *command]
        case "perf-trace":
            command = ["/bin/sh", "-c", PERF_TRACE]
            return version("linux-perf"), ["--reader", "perf-trace", "--", *command]
