"""Tests on the machine's own kernel."""

# Of every test whose result depends on the machine's kernel or privileges.
LIVE_TAGS = [
    # Its result says nothing about another run, so Bazel is not to keep it: without "external" a
    # test that was skipped stays skipped where the privileges are there since.
    "external",
    # Bazel's sandbox takes privileges away.
    "local",
    "no-sandbox",
]

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
        tags = LIVE_TAGS,
        deps = [
            ":testing",
            "//lib:perfring",
            "@googletest//:gtest_main",
        ],
        **kwargs
    )
