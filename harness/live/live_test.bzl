"""Tests on the machine's own kernel."""

def live_test(name, **kwargs):
    """A cc_test that may have the machine's privileges, and is one file that can be copied.

    Args:
      name: NAME.cc is its source.
      **kwargs: passed on to cc_test.
    """
    native.cc_test(
        name = name,
        size = "small",
        srcs = [name + ".cc"],
        linkstatic = True,
        tags = [
            # Bazel's sandbox takes privileges away.
            "local",
            "no-sandbox",
        ],
        deps = [
            ":testing",
            "//lib:perfring",
            "@googletest//:gtest_main",
        ],
        **kwargs
    )
