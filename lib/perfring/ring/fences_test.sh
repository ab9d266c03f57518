#!/usr/bin/env bash
# What HardwareMemory becomes on processors that reorder: clang compiles it for each of them, and
# the instructions must be the barriers that the kernel's protocol asks for, in their place. No
# test that runs on x86 can tell whether a fence is there.
# usage: fences_test.sh FOLDER-OF-lib
set -u
lib=$1
failures=0

# glibc's list of what this machine's libc lacks, which has no entry for other processors.
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
mkdir "$headers/gnu" && touch "$headers/gnu/stubs.h"

source='
#include "perfring/ring/hardware_memory.h"
using namespace perfring;
using M = HardwareMemory;
extern "C" Position head(const SharedPosition& field) {
  const Position value = M::read_once(field);
  M::fence_after_read_of(field);
  return value;
}
extern "C" void tail(SharedPosition& field, SharedPosition value) {
  M::fence_before_write_of(field);
  M::write_once(field, value);
}
extern "C" std::uint64_t twice(const std::byte* at) {
  M::read<std::uint64_t>(at);
  return M::read<std::uint64_t>(at);
}
'

# The instructions of one function, in one line.
instructions() { # ASSEMBLY FUNCTION
  sed -n "/^$2:/,/\.size[[:space:]]*$2/p" <<<"$1" |
    grep -E '^[[:space:]]+[a-z]' | tr -s '[:blank:]' ' ' | tr '\n' ';'
}

expect() { # WHAT TEXT REGEX
  grep -qE "$3" <<<"$2" && return
  echo "FAILED: $1: expected /$3/ in: $2"
  failures=$((failures + 1))
}

# TARGET, then a regular expression for the load of the head and its fence, for the fence and the
# store of the tail, and for two loads.
check() {
  local target=$1 assembly
  # The kernel's and libstdc++'s headers of this machine serve: only their types are used.
  if ! assembly=$(clang-19 --target="$target" -x c++ -std=c++2b -O2 -S -o - -I"$lib" \
    -isystem "$headers" -isystem /usr/include/c++/12 -isystem "/usr/include/$(uname -m)-linux-gnu/c++/12" \
    -idirafter "/usr/include/$(uname -m)-linux-gnu" -fno-asynchronous-unwind-tables \
    - <<<"$source" 2>&1); then
    echo "FAILED: does not compile for $target: $assembly"
    failures=$((failures + 1))
    return
  fi
  expect "$target, data_head" "$(instructions "$assembly" head)" "$2"
  expect "$target, data_tail" "$(instructions "$assembly" tail)" "$3"
  expect "$target, two reads" "$(instructions "$assembly" twice)" "$4"
}

check x86_64-linux-gnu 'mov[lq] .*\(%rdi\)' '(mfence|lock).*;.*mov.*\(%rdi\)' '\(%rdi\).*\(%rdi\)'
check aarch64-linux-gnu 'ldr .*; dmb ishld' 'dmb ish; str ' 'ldr .*ldr '
check riscv64-linux-gnu 'lw|ld .*; fence r, ?rw' 'fence rw, ?rw; sd ' 'ld .*ld '
check powerpc64le-linux-gnu '(lwz|ld) .*; lwsync' '; ?sync; std|^ ?sync; std' 'ld .*ld '
check s390x-linux-gnu '(l|lg|llgf|ng) ' 'bcr 1[45], ?(0|%r0); stg ' 'lg .*lg '

# 32-bit hosts: data_head is one load of its low word, at +4 where the high word comes first.
check armv7-linux-gnueabihf 'ldr r0, \[r0\]; dmb ish' 'dmb ish;.*(strd|stm|str)' 'ldr.*ldr'
check i686-linux-gnu 'movl \(%e..\), %eax' '(mfence|lock).*;.*mov' 'mov.*mov'
check powerpc-linux-gnu 'lwz 3, 4\(3\); lwsync' 'sync;.*stw' 'lwz.*lwz'

# ThreadSanitizer's policy has the same barriers, and tells it of the edge behind each.
source=${source//HardwareMemory/TsanMemory}
source=${source//hardware_memory/tsan_memory}
check aarch64-linux-gnu 'ldr .*; dmb ishld;.* bl __tsan_acquire' 'dmb ish;.* bl __tsan_release;.*str ' 'ldr .*ldr '

[ $failures -eq 0 ] && echo "the fences are there on every processor"
exit $((failures != 0))
