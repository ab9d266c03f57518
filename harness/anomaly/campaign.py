"""Runs flows with one thing that fails, and says what is wrong with how they end.

    bazel run //harness/anomaly:campaign -- --all            every injection, in both of two rooms: the long form
    bazel run //harness/anomaly:campaign -- --all --update   and writes INJECTIONS.md
    bazel run //harness/anomaly:campaign -- --sample 45      drawn ones, for so many seconds; --seed N
    bazel run //harness/anomaly:campaign -- --one 'FLOW CALL ERRNO N'   one, and what it says
    --limit SECONDS   of the long form
    --flows NAME,...   only these; --calls NAME,...   only these; --user NOBODY   as an ordinary user

Exit codes: 0 nothing is wrong, 1 something is, 2 usage or environment, 3 nothing could be shown.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import pwd
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import catalogue
import judge
import tables
from catalogue import Injection

ROOMS = 2
SECONDS = 120  # a longer run counts as hung
SLOW = 5


class Room:
    """A room process (room.cc) and its folder."""

    def __init__(self, paths, user):
        self.folder = tempfile.mkdtemp(prefix="anomaly_")
        who = {}
        if user is not None:
            who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self.paths = paths | {"folder": self.folder + "/run", "bpf": self.folder + "/bpf"}
        self.process = subprocess.Popen(
            [paths["room"], self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin"},
            **who,
        )

    def run(self, flow, injection=None, seconds=SECONDS):
        job = catalogue.job_of(injection, flow, self.paths, seconds)
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            sys.exit(self.process.wait() or 2)  # the room has printed why
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        os.rmdir(self.folder)


class Campaign:
    def __init__(self, paths, user, seconds=SECONDS):
        self.calls = catalogue.read_calls()
        self.known = catalogue.read_known()
        self.expected = 0
        self.end = float("inf")
        self.rooms = queue.Queue()
        self.all_rooms = [Room(paths, user) for _ in range(ROOMS)]
        for room in self.all_rooms:
            self.rooms.put(room)
        self.seconds = seconds
        self.baselines = {}
        self.counts = collections.Counter()  # of injections, by flow and call
        self.times = collections.Counter()
        self.found = []
        self.kinds = collections.Counter()
        self.skipped = {}

    def run(self, flow, injection=None):
        room = self.rooms.get()
        try:
            return room.run(flow, injection, self.seconds)
        finally:
            self.rooms.put(room)

    def prepare(self, flow):
        """Runs the flow with nothing failing. Returns whether the flow can run here."""
        uncounted = Injection(flow.name, "malloc", "ENOMEM", 10**9)  # too large: none fails
        result = self.run(flow) if flow.has_calls else self.run(flow, uncounted)
        if flow.is_of_library and result["code"] == 3:
            self.skipped[flow.name] = result["err"]["text"].strip()
            return False
        nothing = Injection(flow.name, "none", "", 0)
        faults = judge.faults_in(flow, None, nothing, result, result)
        if result["code"] not in flow.codes:
            faults.append(f"its exit code is {result['code']}: {result['err']['text']}")
        faults += [
            f"{call} is not in errnos.txt" for call in result["counts"] if call not in self.calls
        ]
        counts = {
            name: count
            for name, count in result["counts"].items()
            if name in self.calls and self.calls[name].errnos and name not in flow.spares
        }
        last = self.run(flow, uncounted)
        if last["counts"]["malloc"]:
            counts["malloc"] = last["counts"]["malloc"]
        if not counts and not result["counts"]:
            faults.append("no call of it was counted")
        self.note(nothing, faults)
        if flow.files:
            counts["cut"] = 8
        self.baselines[flow.name] = result | {"counts": counts}
        return True

    def inject(self, flow, injection):
        """Returns whether the run reached the n-th call."""
        began = time.monotonic()
        result = self.run(flow, injection)
        self.times[flow.name] += time.monotonic() - began
        if time.monotonic() - began > SLOW:
            print(f"{time.monotonic() - began:.0f} s: {replay(injection)}", file=sys.stderr)
        if not result["reached"]:
            return False
        self.counts[flow.name, injection.call] += 1
        self.note(
            injection,
            judge.faults_in(
                flow, self.calls[injection.call], injection, result, self.baselines[flow.name]
            ),
        )
        return True

    def note(self, injection, faults):
        for fault in faults:
            if any(
                flow == injection.flow and call in ("*", injection.call) and fault.startswith(begin)
                for flow, call, begin in self.known
            ):
                self.expected += 1
                continue
            self.found.append((injection, fault))
            # Print each kind once per flow and call.
            kind = (injection.flow, injection.call, re.sub(r"[0-9]+", "N", fault)[:60])
            self.kinds[kind] += 1
            if self.kinds[kind] == 1:
                print(f"FOUND: {fault}\n    {replay(injection)}", flush=True)

    def exhaust(self, flow, call, what):
        """Injects with n = 1, 2, ... until the run does not reach the n-th call. After `most`, n grows by a quarter
        each time: a file that is read in a thousand pieces does not take a thousand runs."""
        nth, most = 1, 200 if flow.is_of_library else 12
        while time.monotonic() < self.end and self.inject(
            flow, Injection(flow.name, call.name, what, nth)
        ):
            nth += 1 if nth < most else nth // 4

    def close(self):
        for room in self.all_rooms:
            room.close()


def replay(injection):
    return f"bazel run //harness/anomaly:campaign -- --one '{' '.join(map(str, injection))}'"


def everything(campaign, flows, wanted, limit):
    """Runs every injection, in an order in which a time limit still leaves some for each flow."""
    each = [
        (flow, campaign.calls[name], what)
        for flow in flows
        for name in campaign.baselines[flow.name]["counts"]
        if not wanted or name in wanted
        for what in catalogue.whats(campaign.calls[name])
    ]
    random.Random(1).shuffle(each)
    each.sort(key=lambda one: one[1].name != "malloc")
    campaign.end = time.monotonic() + limit
    with concurrent.futures.ThreadPoolExecutor(ROOMS) as pool:
        tasks = [pool.submit(campaign.exhaust, *one) for one in each]
        for done, task in enumerate(tasks):
            task.result()
            if done % 200 == 0:
                print(
                    f"{sum(campaign.counts.values())} injections, {done} of {len(tasks)}",
                    file=sys.stderr,
                )


def drawn(campaign, flows, wanted, seconds, seed):
    """Runs random injections: each flow is equally likely, then each of its calls, then each errno."""
    draw = random.Random(seed)
    end = time.monotonic() + seconds

    def one(number):
        if time.monotonic() >= end:
            return
        each = random.Random(f"{seed}.{number}")
        flow = flows[number % len(flows)]
        counts = campaign.baselines[flow.name]["counts"]
        names = sorted(name for name in counts if not wanted or name in wanted)
        if not names:
            return
        name = each.choice(names)
        campaign.inject(
            flow,
            Injection(
                flow.name,
                name,
                each.choice(catalogue.whats(campaign.calls[name])),
                each.randint(1, counts[name]),
            ),
        )

    draw.shuffle(flows)
    with concurrent.futures.ThreadPoolExecutor(ROOMS) as pool:
        list(pool.map(one, range(100 * int(seconds) + len(flows))))


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("room", "flows-program", "perfring", "preload", "adapter", "subject"):
        parser.add_argument("--" + name, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=float)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("--one")
    parser.add_argument("--flows", default="")
    parser.add_argument("--calls", default="")
    parser.add_argument("--user")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--planted", action="store_true")
    return parser.parse_args()


def paths_of(arguments, folder):
    """Copies the programs, so that every user may run them. Returns the paths."""
    paths = {"tree": folder}
    for name in ("room", "flows_program", "perfring", "preload", "adapter", "subject"):
        source = getattr(arguments, name)
        paths[name] = str(shutil.copy(os.path.realpath(source), folder))
        os.chmod(paths[name], 0o755)
    paths["flows"] = paths.pop("flows_program")
    for flow in catalogue.read_flows():
        for source in flow.files.values():
            if not source.startswith(("text:", "{")):
                copy = pathlib.Path(folder, source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(os.path.realpath(source), copy)
                os.chmod(copy, 0o644)
    paths["perf_data"] = f"{folder}/perf.data"
    recorded = subprocess.run(
        [paths["perfring"], "record", "-e", "page-faults", "-o", paths["perf_data"], "--", "true"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
    )
    refused = ("Operation not permitted", "the online CPUs cannot be read")
    if recorded.returncode == 2 and any(each in recorded.stderr for each in refused):
        # A seccomp filter, or no sysfs. Any other failure is an error.
        print(f"campaign: nothing can be recorded here: {recorded.stderr}", file=sys.stderr)
        sys.exit(3)
    recorded.check_returncode()
    os.chmod(paths["perf_data"], 0o644)
    return paths


def chosen(flows, arguments):
    if arguments.one:
        wanted = {arguments.one.split()[0]}
    elif arguments.flows:
        wanted = set(arguments.flows.split(","))
    else:
        return [flow for flow in flows if not flow.planted]
    if unknown := wanted - {flow.name for flow in flows}:
        sys.exit(f"campaign: no such flow: {', '.join(unknown)}")
    return [flow for flow in flows if flow.name in wanted]


def show_one(campaign, flow, words):
    injection = Injection(words[0], words[1], words[2], int(words[3]))
    result = campaign.run(flow, injection)
    print(json.dumps(result, indent=1))
    if not result["reached"]:
        print("it is not reached")
        return 3
    faults = judge.faults_in(
        flow, campaign.calls[injection.call], injection, result, campaign.baselines[flow.name]
    )
    for fault in faults:
        print(f"FOUND: {fault}")
    return 1 if faults else 0


def find_planted(campaign, flows):
    """Checks that the campaign finds each planted fault under its own name."""
    missing = 0
    for flow in flows:
        campaign.found.clear()
        names = list(campaign.baselines[flow.name]["counts"])
        for name in names:
            for what in catalogue.whats(campaign.calls[name]):
                if not any(flow.planted in fault for _, fault in campaign.found):
                    campaign.exhaust(flow, campaign.calls[name], what)
        if not any(flow.planted in fault for _, fault in campaign.found):
            print(f"NOT FOUND: {flow.name}, as '{flow.planted}'")
            missing += 1
    return 1 if missing or not flows else 0


def is_root():
    """Whether this is root of the machine (harness/program/privileges.h)."""
    with open("/proc/self/uid_map", encoding="ascii") as ids:
        is_first_namespace = int(ids.readline().split()[2]) == 2**32 - 1
    with open("/proc/self/status", encoding="utf-8") as status:
        effective = next(line for line in status if line.startswith("CapEff:")).split()[1]
    cap_sys_admin = 1 << 21
    return os.geteuid() == 0 and is_first_namespace and int(effective, 16) & cap_sys_admin != 0


def work(arguments, paths):
    user = pwd.getpwnam(arguments.user) if arguments.user else None
    flows = chosen(catalogue.read_flows(), arguments)
    has_root = is_root() and user is None
    limit = 10 if any(flow.planted == "hangs" for flow in flows) else SECONDS
    campaign = Campaign(paths, user, limit)
    ready = []
    for flow in flows:
        if flow.root and not has_root:
            campaign.skipped[flow.name] = "it needs root, for the live kernel"
        elif campaign.prepare(flow):
            ready.append(flow)
    wanted = set(filter(None, arguments.calls.split(",")))
    for name, why in campaign.skipped.items():
        print(f"skipped: {name}: {why}")
    code = None
    if arguments.one:
        code = show_one(campaign, ready[0], arguments.one.split()) if ready else 3
    elif arguments.planted:
        code = find_planted(campaign, ready)
    elif arguments.all:
        everything(campaign, ready, wanted, arguments.limit)
    else:
        print(f"seed {arguments.seed}")
        drawn(campaign, ready, wanted, arguments.sample or 45, arguments.seed)
    campaign.close()
    if code is not None:
        return code
    total = sum(campaign.counts.values())
    print(
        f"{total} injections in {len(ready)} flows, {len(campaign.found)} found, {campaign.expected} known"
    )
    if arguments.update:
        tables.update(campaign.counts)
    return 1 if campaign.found else 0 if total else 3


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory(prefix="anomaly_") as folder:
        os.chmod(folder, 0o755)
        sys.exit(work(arguments, paths_of(arguments, folder)))


main()
