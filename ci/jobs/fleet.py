"""OSS-Fuzz's build script, as far as it works without a container.

Does what OSS-Fuzz and ClusterFuzzLite do in their containers: runs the build script with their
variables, for each available sanitizer, and each program on its corpus.
Exit codes: 0 all passed, 1 something failed, 2 usage or environment; with --simulate, 0 or that of
the simulation that ended badly.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import zipfile

from jobs import bazel, cases, processes, results, usage
from jobs.checkout import ROOT
from jobs.checks import Failed, check

TARGETS = "hostile_ring kernel_script two_consumers parsers/sim_options parsers/litmus".split()
RUNS = 10_000  # of one process


def start_simulation(program, seed, environment):
    """Starts runs, in a process group of their own."""
    command = [program, "sim", "--runs", str(RUNS), "--seed", str(seed)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, process_group=0)


def simulate(hours):
    """Simulates on every core until the time is over, or until an invariant is violated: the first
    process that ends badly ends all. Returns its exit code."""
    if not bazel.build("--config=opt", "//:perfring"):
        return 2
    end = time.monotonic() + 3600 * hours
    environment = {**os.environ, **commit()}
    program = (ROOT / "bazel-bin/harness/cli/perfring").resolve()
    # Each core has its own seeds, and starts at a seed that no earlier run started at.
    now = int(time.time()) * 1_000_000_000
    seeds = {core: now + core * 100_000_000 for core in range(len(os.sched_getaffinity(0)))}
    running = {}
    try:
        while running or time.monotonic() < end:
            for core, seed in seeds.items():
                if core in running and running[core].poll() is None:
                    continue
                ended = running.pop(core, None)
                if ended is not None and ended.returncode != 0:
                    return processes.exit_code(ended)
                if time.monotonic() < end:
                    running[core] = start_simulation(program, seed, environment)
                    seeds[core] = seed + RUNS
            time.sleep(0.2)
        return 0
    finally:
        for process in running.values():
            processes.end(process, group=True)


def commit():
    """Returns the environment variable with the commit: a seed repeats a run only there."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    return {"PERFRING_COMMIT": described.stdout.strip()} if described.returncode == 0 else {}


def build(log, folder, sanitizer, targets, *flags):
    (folder / sanitizer).mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "SRC": str(ROOT),
        "OUT": str(folder / sanitizer),
        "SANITIZER": sanitizer,
        "TARGETS": " ".join(targets),
        "CXX": "clang++-19",
        "CXXFLAGS": " ".join(["-O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link", *flags]),
        "LIB_FUZZING_ENGINE": "-fsanitize=fuzzer",
    }
    log.run("ci/oss-fuzz/build.sh", env=environment)


def replay(log, folder, sanitizer, target):
    """Replays the target's packed seed corpus."""
    inputs = folder / sanitizer / f"{target}_inputs"
    inputs.mkdir()
    with zipfile.ZipFile(folder / sanitizer / f"{target}_seed_corpus.zip") as packed:
        packed.extractall(inputs)
    if not any(inputs.iterdir()):
        raise Failed(f"{target}_seed_corpus.zip is empty")
    log.run(folder / sanitizer / target, "-runs=0", inputs)


def brings_libraries(log, folder):
    own = f"{folder}/address/lib/libboost_context"
    if own not in log.output("ldd", folder / "address/sim_options"):
        raise Failed(f"ldd does not name {own}")


def check_all(folder):
    names = [target.rpartition("/")[2] for target in TARGETS]
    check("fleet", "build address", build, folder, "address", TARGETS, "-fsanitize=address")
    for name in names:
        check("fleet", f"address {name}", replay, folder, "address", name)
    check("fleet", "address sim_options brings its libraries along", brings_libraries, folder)
    undefined = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    check("fleet", "build undefined", build, folder, "undefined", ["hostile_ring"], *undefined)
    check("fleet", "undefined hostile_ring", replay, folder, "undefined", "hostile_ring")
    # Only build it: the C++ library here is not instrumented, unlike the container's, and
    # MemorySanitizer would report libFuzzer's own use of it.
    memory = "-fsanitize=memory"
    check("fleet", "build memory", build, folder, "memory", ["hostile_ring"], memory)


def main(arguments):
    parser = usage.Parser("fleet", __doc__)
    parser.add_argument(
        "--simulate",
        metavar="HOURS",
        type=int,
        choices=range(1, 100),
        help="random simulations on every core, instead: from 1 to 99 hours",
    )
    hours = parser.parse_args(arguments).simulate
    if hours is not None:
        return simulate(hours)
    shutil.rmtree(cases.RESULTS / "fleet", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        check_all(pathlib.Path(folder))
    return results.finish("fleet")
