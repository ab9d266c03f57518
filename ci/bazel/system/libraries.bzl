"""The libraries that WORKSPACE names for Bazel 4, for MODULE.bazel."""

load("@bazel_tools//tools/build_defs/repo:local.bzl", "new_local_repository")

def _libraries(_context):
    new_local_repository(
        name = "googletest",
        build_file = "//ci/bazel/system:googletest.BUILD",
        path = "/usr/src/googletest",
    )

libraries = module_extension(implementation = _libraries)
