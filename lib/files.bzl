"""The files of a folder, for tests that read or compile them by themselves."""

def files():
    """Declares two filegroups of a package.

    files    its sources, headers, scripts and documents, also in folders that are not packages
    sources  what its library is compiled from
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
            [
                "*.cc",
                "*.h",
            ],
            exclude = ["*_test.cc"],
        ),
        visibility = ["//lib:__subpackages__"],
    )
