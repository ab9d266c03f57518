"""The files that cite facts, for //harness:citations_test."""

def citing(also = []):
    """Declares ":citing": this package's sources and documents, and `also`."""
    native.filegroup(
        name = "citing",
        srcs = also + native.glob([
            "*.cc",
            "*.h",
            "*.md",
        ]),
        visibility = ["//harness:__pkg__"],
    )
