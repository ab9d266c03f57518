"""Runs jobs one after another: installs what each needs, runs it, and counts its test cases."""
import shutil
import subprocess
import sys
import time

from jobs import cases, catalogue, processes, results

# The whole run is limited to about half an hour. If nothing was built before, this much time (in
# seconds) may pass early, and the jobs in LEFT_LATE are not started.
LATE = 1500
LEFT_LATE = ("fuzz", "package", "foreign", "cross")
NOT_EVERYWHERE = ("foreign", "cross")  # their packages are not available everywhere


def no_job(why):
    print(f"{why}: no job can be run", file=sys.stderr)
    print("0 passed, 1 failed, 0 skipped")
    return 1


def why_not(job, started):
    """Returns the reason if the job cannot be run here, else None."""
    passed = time.monotonic() - started
    if job in LEFT_LATE and passed >= LATE:
        return f"{int(passed // 60)} minutes have passed"
    if job in NOT_EVERYWHERE:
        set_up = processes.run(["ci/setup", job], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if set_up.returncode != 0:
            last = set_up.stdout.rstrip("\n").rpartition("\n")[2]
            return f"ci/setup {job} failed: {last}"
    return None


def run_job(job):
    """Installs the job's packages and runs it. (why_not() has already installed those of the jobs
    in NOT_EVERYWHERE.) Returns its exit code."""
    if job not in NOT_EVERYWHERE:
        set_up = processes.run(["ci/setup", job], stdout=sys.stderr)
        if set_up.returncode != 0:
            return processes.exit_code(set_up)
    return catalogue.run(job, [])


def run_all(jobs, started):
    """Runs the jobs, until a signal comes. Returns whether none failed, and the jobs not run."""
    succeeded, not_run = True, []
    for job in jobs:
        began = time.monotonic()
        print(f"=== ci/run {job}")
        why = why_not(job, started)
        if why is not None:
            print(f"{job}: skipped as a whole: {why}")
            cases.write_one(job, job, "skipped", why)
            not_run.append(job)
            continue
        status = run_job(job)
        if processes.received:  # a signal that the job has taken
            raise processes.Terminated(128 + processes.received[-1])
        results.ended(job, status)
        if status != 0:
            succeeded = False
            print(f"ci/run {job} failed; run it alone to see it again")
        print(f"=== ci/run {job} took {time.monotonic() - began:.0f} s")
    return succeeded, not_run


def run(jobs):
    """Runs the jobs. The last line of the output sums up the test cases; the line before it names
    the jobs that were NOT RUN, if any. Returns 0 if nothing failed, else 1."""
    started = time.monotonic()
    if processes.run(["ci/setup"]).returncode != 0:
        return no_job("ci/setup failed")
    try:
        cases.RESULTS.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return no_job(f"{error}: PERFRING_RESULTS is to be a folder that can be written to")
    for job in jobs:
        shutil.rmtree(cases.RESULTS / job, ignore_errors=True)  # left by another run
    succeeded, not_run = run_all(jobs, started)
    if not_run:
        names = " ".join(not_run)
        print(f"NOT RUN: {names} (the reasons are above): ci/run {names}")
    counts = results.sum_up(jobs)
    print(cases.line(counts))
    return 0 if succeeded and not counts["failed"] else 1
