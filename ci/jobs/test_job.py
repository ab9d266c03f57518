"""`bazel test` on //..., or on targets, as a job with reports in ci-results/NAME/."""
import re
import subprocess

from jobs import processes, results, usage


def flags_and_targets(parser, arguments):
    """Reads [BAZEL FLAG...] [-- TARGET...]. Other arguments are the parser's error."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    flags, targets = arguments[:at], arguments[at + 1 :]
    for each in flags:
        if not each.startswith("-"):
            parser.error(f"'{each}' is not accepted as a flag of Bazel's")
    for each in targets:
        if not each.startswith("//"):
            parser.error(f"'{each}' is not accepted as a target")
    if at < len(arguments) and not targets:
        parser.error("there is no target after --")
    return flags, targets


def test(job, flags, targets):
    """Runs the tests. Returns the job's exit code."""
    usage.require("bazel")
    if targets:
        # Find a missing target now: with --keep_going, Bazel would build all the others first.
        query = ["bazel", "query", "--noshow_progress", f"set({' '.join(targets)})"]
        if processes.run(query, stdout=subprocess.DEVNULL).returncode != 0:
            return 2
    return results.job_of_tests(job, flags, targets or ["//..."])


def run(job, description, arguments, flags=(), targets=(), options=""):
    """Runs a job of tests, with its own flags and those of the command line; on its own targets,
    or, if it has none, on those of the command line. `options`: what the job takes before Bazel's
    flags. Returns the job's exit code."""
    parser = usage.Parser(
        job,
        description,
        usage=f"ci/run {job} {options}[BAZEL FLAG...]   (a flag's value after =: --config=opt)",
    )
    if "-h" in arguments or "--help" in arguments:
        parser.print_help()
        return 0
    if targets and "--" in arguments:
        parser.error("'--' is not accepted: the job has targets of its own")
    more_flags, more_targets = flags_and_targets(parser, arguments)
    return test(job, [*flags, *more_flags], more_targets or targets)


def main(arguments):
    parser = usage.Parser(
        "test_job",
        __doc__,
        usage="ci/run test_job NAME [BAZEL FLAG...] [-- TARGET...]   (a flag's value after =)",
    )
    if "-h" in arguments or "--help" in arguments:
        parser.print_help()
        return 0
    job = arguments[0] if arguments else ""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", job):
        parser.error(f"'{job}' is not accepted as NAME")
    return test(job, *flags_and_targets(parser, arguments[1:]))
