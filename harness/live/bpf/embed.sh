#!/bin/sh
# Compiles a BPF program, and writes a C++ source that contains the object file. For Bazel and
# CMake.
# usage: embed.sh NAME TARGET CLANG ROOT SOURCE OBJECT HEADER CC
#   ROOT: the folder to which SOURCE's includes, and HEADER's path in CC, are relative
set -eu
name=$1 target=$2 clang=$3 root=$4 source=$5 object=$6 header=$7 cc=$8
# -g: libbpf needs the BTF. The kernel's <asm/types.h> is in the multiarch folder. Ask g++ for its
# name, which `uname -m` does not give on 32-bit machines.
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
