"""Debian's names: the architecture's, its compiler's prefix and its libraries' folder."""

ARCHITECTURES = {
    # name: (prefix, folder, what the compiler is to be told)
    # Not foreign, but a static program for Debian's kernel of it is made in the same way.
    "amd64": ("x86_64-linux-gnu", "x86_64-linux-gnu", []),
    "arm64": ("aarch64-linux-gnu", "aarch64-linux-gnu", []),
    # The notes on a changed C++ ABI of GCC 7.1 are of no use to anybody who compiles all with 12.
    "armhf": ("arm-linux-gnueabihf", "arm-linux-gnueabihf", ["-Wno-psabi"]),
    "i386": ("i686-linux-gnu", "i386-linux-gnu", []),
    "s390x": ("s390x-linux-gnu", "s390x-linux-gnu", []),
}
