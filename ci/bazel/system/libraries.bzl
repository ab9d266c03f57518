"""A module extension for MODULE.bazel, with the libraries that WORKSPACE declares for Bazel 4."""

load("@bazel_tools//tools/build_defs/repo:local.bzl", "new_local_repository")

def _libraries(_context):
    new_local_repository(
        name = "googletest",
        build_file = "//ci/bazel/system:googletest.BUILD",
        path = "/usr/src/googletest",
    )

libraries = module_extension(implementation = _libraries)
