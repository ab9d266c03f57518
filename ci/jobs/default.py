"""README's test command, `bazel test //...` (g++; warnings are errors)."""
from jobs import test_job


def main(arguments):
    return test_job.run("default", __doc__, arguments)
