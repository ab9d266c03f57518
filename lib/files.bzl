"""The files of a folder, for tests that read or compile them by themselves."""

def files():
    """Declares for a package:

    files    its sources, headers and documents, and those of folders that are no packages
    sources  the sources of its library
    """
    native.filegroup(
        name = "files",
        srcs = native.glob([
            "**/*.cc",
            "**/*.h",
            "**/*.md",
            "**/*.sh",
        ]),
        visibility = ["//:__subpackages__"],
    )
    native.filegroup(
        name = "sources",
        srcs = native.glob(
            ["*.cc"],
            exclude = ["*_test.cc"],
            allow_empty = True,
        ),
        visibility = ["//lib:__subpackages__"],
    )
