"""BPF programs, compiled by clang and embedded in a C++ library."""

load("@rules_cc//cc:defs.bzl", "cc_library")

def bpf_object(name, src, hdrs = [], **kwargs):
    """Compiles `src` for the target's byte order and embeds the object file.

    The library has `NAME.h`, which declares `std::span<const std::byte> NAME()` in
    perfring::live: the bytes of the ELF object, to be opened with bpf_object__open_mem().

    Args:
      name: the library's name, and the function's.
      src: the program, in C.
      hdrs: headers that it includes by workspace path, in addition to writer.h.
      **kwargs: passed on to the library.
    """
    repository = native.repository_name()[1:]
    embed = " ".join([
        "$(location //harness/live/bpf:embed.sh) {name} {{}} clang-19 {root}",
        "$(location {src}) $(location {name}.bpf.o) $(location {name}.h) $(location {name}.cc)",
    ]).format(name = name, root = "external/" + repository if repository else ".", src = src)
    native.genrule(
        name = name + "_cc",
        srcs = [src, "//harness/live/bpf:writer.h"] + hdrs,
        outs = [
            name + ".bpf.o",
            name + ".h",
            name + ".cc",
        ],
        cmd = select({
            "//ci/bazel/cross:for_s390x": embed.format("bpfeb"),
            "//conditions:default": embed.format("bpfel"),
        }),
        tools = ["//harness/live/bpf:embed.sh"],
    )
    cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        **kwargs
    )
