#!/bin/sh
# Compiles a BPF program and writes the C++ source that has the object file in it, for Bazel and for CMake.
# usage: embed.sh NAME TARGET CLANG ROOT SOURCE OBJECT HEADER CC
#   ROOT: the folder that SOURCE's includes, and HEADER's path in CC, begin in
set -eu
name=$1 target=$2 clang=$3 root=$4 source=$5 object=$6 header=$7 cc=$8
# -g: libbpf needs the BTF. The kernel's <asm/types.h> is in the multiarch folder, of whose name
# `uname -m` knows nothing on 32-bit machines.
"$clang" -target "$target" -std=gnu2x -O2 -g -Wall -Wextra -Werror -I"$root" \
  -idirafter "/usr/include/$(g++ -print-multiarch)" -c "$source" -o "$object"
cat >"$header" <<END
#pragma once
#include <cstddef>
#include <span>
namespace perfring::live {
std::span<const std::byte> $name();
}
END
{
  echo "#include \"${header##*/}\""
  echo 'namespace { alignas(8) constexpr unsigned char object[] = {'
  xxd -i <"$object"
  echo '}; }'
  echo "std::span<const std::byte> perfring::live::$name() { return std::as_bytes(std::span(object)); }"
} >"$cc"
