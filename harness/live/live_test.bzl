"""Tests on the machine's own kernel."""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//lib/perfring/testing:one_unit.bzl", "cc_unit_test")

# Of every test whose result depends on the machine's kernel or privileges.
LIVE_TAGS = [
    # Its result says nothing about another run, so Bazel is not to keep it: without "external" a
    # test that was skipped stays skipped where the privileges are there since.
    "external",
    # Bazel's sandbox takes privileges away.
    "local",
    "no-sandbox",
]

def live_test(name, srcs, **kwargs):
    """A cc_test that may have the machine's privileges, and is one file that can be copied.

    Args:
      name: its name.
      srcs: its sources, which compile as one unit.
      **kwargs: passed on to cc_test.
    """
    cc_unit_test(
        name = name,
        srcs = srcs,
        linkstatic = True,
        tags = LIVE_TAGS,
        deps = [
            ":testing",
            "//lib:perfring",
            "@googletest//:gtest_main",
        ],
        **kwargs
    )
