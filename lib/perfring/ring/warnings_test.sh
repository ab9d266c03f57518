#!/usr/bin/env bash
# The headers are clean under warnings that this project does not build with, but a user may: all of
# clang's, and g++'s that -Wall and -Wextra leave out. Every drain is instantiated.
# usage: warnings_test.sh FOLDER-OF-lib COMPILER...
set -u
. lib/perfring/testing/test.sh
lib=$1
shift

gcc=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Warith-conversion -Wshadow
  -Wuseless-cast -Wold-style-cast -Wcast-qual -Wduplicated-cond
  -Wduplicated-branches -Wlogical-op -Wnull-dereference -Wdouble-promotion -Wformat=2
  -Wswitch-default -Wswitch-enum -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wundef
  -Wredundant-decls -Wmissing-declarations -Wzero-as-null-pointer-constant)
# But for: what C++98 and C++20 lack, how a struct is laid out, and that pointers are computed with
# and spans made of them, which is what a ring is about.
clang=(-Weverything -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-c++20-compat -Wno-padded
  -Wno-unsafe-buffer-usage)

source='
#include "perfring/perfring.h"
#include "perfring/record/layouts.h"
#include "perfring/record/to_string.h"
#include "perfring/record/whole.h"
using namespace perfring;
unsigned long records(Bytes, const record::Layouts&);
unsigned long records(Bytes bytes, const record::Layouts& layouts) {
  return to_string(decode(record::whole(bytes, {}, {}), layouts)).size();
}
unsigned long all_of(PerfBuffer&, Ring<>&);
unsigned long all_of(PerfBuffer& buffer, Ring<>& ring) {
  unsigned long count = buffer.fold(0UL, [](unsigned long n, const PerfEvent&) { return n + 1; });
  ring.for_each([&](const PerfEvent&) { ++count; });
  const auto flow = ring.try_fold(count, [](unsigned long n, PerfEvent) -> ControlFlow<int, unsigned long> {
    return Continue{n};
  });
  return flow.is_break() || to_string(Defect::BadSize) == nullptr ? 0 : count;
}
'

compile() { # COMPILER SOURCE, prints diagnostics
  local options=("${gcc[@]}")
  [[ $("$1" --version) == *clang* ]] && options=("${clang[@]}")
  "$1" -x c++ -std=c++2b -O2 -c -o /dev/null "${options[@]}" -Werror -I"$lib" - 2>&1 <<<"$2"
}

compilers=0
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || continue
  compilers=$((compilers + 1))
  said=$(compile "$compiler" "$source") ||
    fail "$compiler warns: $said"
  # And the warnings do their work.
  compile "$compiler" "$source int f(int n); int f(int n) { switch (n) { case 1: return 1; } return 0; }" \
    >/dev/null && fail "$compiler does not warn"
done

[ $compilers -ne 0 ] || fail "no compiler"
finish "no warning of $compilers compilers"
