"""What cites facts, for //harness:citations_test."""

def citing(also = []):
    """This package's sources and documents, and `also`: ":citing"."""
    native.filegroup(
        name = "citing",
        srcs = also + native.glob([
            "*.cc",
            "*.h",
            "*.md",
        ]),
        visibility = ["//harness:__pkg__"],
    )
