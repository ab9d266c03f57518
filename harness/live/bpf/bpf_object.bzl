"""BPF programs, compiled by clang and embedded in a C++ library."""

# -g: libbpf needs the BTF. The kernel's <asm/types.h> is in the multiarch folder, of
# whose name `uname -m` knows nothing on 32-bit machines.
def _compile(src, target):
    return " ".join([
        "clang-19 -target {} -std=gnu2x -O2 -g -Wall -Wextra -Werror -I.".format(target),
        "-idirafter /usr/include/$$(g++ -print-multiarch)",
        "-c $(location {}) -o $@".format(src),
    ])

def bpf_object(name, src, hdrs = [], **kwargs):
    """Compiles `src` for the target's byte order and embeds the object file.

    The library has `NAME.h`, which declares `std::span<const std::byte> NAME()` in
    perfring::live: the bytes of the ELF object, to be opened with bpf_object__open_mem().

    Args:
      name: the library's name, and the function's.
      src: the program, in C.
      hdrs: headers it includes by their workspace path.
      **kwargs: passed on to the library.
    """
    native.genrule(
        name = name + "_o",
        srcs = [src] + hdrs,
        outs = [name + ".bpf.o"],
        cmd = select({
            "//ci/bazel/cross:for_s390x": _compile(src, "bpfeb"),
            "//conditions:default": _compile(src, "bpfel"),
        }),
    )
    native.genrule(
        name = name + "_cc",
        srcs = [name + "_o"],
        outs = [
            name + ".h",
            name + ".cc",
        ],
        cmd = """
cat > $(location {name}.h) <<END
#pragma once
#include <cstddef>
#include <span>
namespace perfring::live {{
std::span<const std::byte> {name}();
}}
END
{{
  echo '#include "{package}/{name}.h"'
  echo 'namespace {{ alignas(8) constexpr unsigned char object[] = {{'
  xxd -i < $(location {name}_o)
  echo '}}; }}'
  echo 'std::span<const std::byte> perfring::live::{name}() {{ return std::as_bytes(std::span(object)); }}'
}} > $(location {name}.cc)
""".format(name = name, package = native.package_name()),
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        **kwargs
    )
