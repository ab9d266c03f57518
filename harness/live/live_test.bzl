"""Tests on the machine's own kernel."""

load("@rules_cc//cc:defs.bzl", "cc_test")

# Tags of every test whose result depends on the machine's kernel or privileges.
LIVE_TAGS = [
    # The result says nothing about another run, so Bazel must not cache it. Without "external", a
    # skipped test would stay skipped after the privileges were granted.
    "external",
    # Bazel's sandbox takes privileges away.
    "local",
    "no-sandbox",
]

def live_test(name, srcs, **kwargs):
    """Defines a cc_test that keeps the machine's privileges, and is one file that can be copied.

    Args:
      name: its name.
      srcs: its sources.
      **kwargs: passed on to cc_test.
    """
    cc_test(
        name = name,
        size = "medium",
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
