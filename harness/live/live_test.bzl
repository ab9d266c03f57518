"""Tests on the machine's own kernel."""

def live_test(name, srcs = None, deps = [], tags = [], **kwargs):
    """A cc_test that may have the machine's privileges, and is one file that can be copied.

    Args:
      name: NAME.cc is its source, unless srcs are given.
      srcs: its sources.
      deps: what it needs besides the harness for live tests.
      tags: besides those that keep Bazel's sandbox away, which takes privileges.
      **kwargs: passed on to cc_test.
    """
    native.cc_test(
        name = name,
        size = "small",
        srcs = srcs or [name + ".cc"],
        linkstatic = True,
        tags = tags + ["no-sandbox", "local"],
        deps = deps + [
            ":testing",
            "//lib:perfring",
            "@googletest//:gtest_main",
        ],
        **kwargs
    )
