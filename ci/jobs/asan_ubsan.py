"""All code that handles ring or file bytes, in fuzz's build; --all: every test.

The build is clang's, with AddressSanitizer and UndefinedBehaviorSanitizer.
"""
from jobs import test_job

HARNESS = "kernel live record rig script".split()
TARGETS = [
    *("//lib/...", "//fuzz/...", "//proptests/..."),
    *(f"//harness/{name}/..." for name in HARNESS),
    "//harness/simulator:simulation_test",
]


def main(arguments):
    # Tests tagged "native" compile or install the code under test themselves.
    tags, targets = "-native,-executions", TARGETS
    if arguments[:1] == ["--all"]:
        tags, targets, arguments = "-native", ["//..."], arguments[1:]
    flags = ["--config=fuzz", f"--test_tag_filters={tags}"]
    return test_job.run("asan-ubsan", __doc__, arguments, flags, targets, "[--all] ")
