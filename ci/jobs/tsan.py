"""The tests with threads, the ordering faults included, under ThreadSanitizer.

The commands that start some of these threads (//harness/cli:{commands,live_commands}_test) are left
out, because they take as long to build as all the rest. All other tests run in one thread, so
`bazel test --config=tsan //...` would show no more about them than ci/run default.
"""
from jobs import test_job

TARGETS = [
    "//lib/perfring:all",
    *(f"//lib/perfring/{name}/..." for name in "os ring merge wait snapshot rings".split()),
    *(f"//harness/{name}/..." for name in "kernel live stress".split()),
    "//harness/faults:faults_tsan_test",
]


def main(arguments):
    flags = ["--config=tsan", "--test_tag_filters=-native"]
    return test_job.run("tsan", __doc__, arguments, flags, TARGETS)
