#!/usr/bin/env bash
# What HardwareCpu becomes on processors that reorder, and what the compiler may not move: the
# barriers of the kernel's side must be there, in their place. No test that runs on x86 can tell
# whether a fence is there, and ThreadSanitizer is told of the edge apart from it.
# usage: fences_test.sh
set -u
failures=0

# glibc's list of what this machine's libc lacks, which has no entry for other processors.
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
mkdir "$headers/gnu" && touch "$headers/gnu/stubs.h"

source='
#include "harness/kernel/cpu.h"
using namespace perfring::kernel;
extern "C" void publish(HardwareCpu& cpu, __u32& record, __u64& data_head) {
  record = 7;
  cpu.smp_wmb(data_head);
  cpu.write_once(data_head, 8);
}
extern "C" void claim(HardwareCpu& cpu, __u32& record, const __u64& data_tail) {
  record = 7;
  cpu.control_dependency(data_tail);
  record = 9;
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

# TARGET, then a regular expression for the record, the barrier and data_head, and for the two
# stores around the look at data_tail.
check() {
  local target=$1 assembly
  # The kernel's and libstdc++'s headers of this machine serve: only their types are used.
  if ! assembly=$(clang-19 --target="$target" -x c++ -std=c++2b -O2 -S -o - -I. \
    -isystem "$headers" -isystem /usr/include/c++/12 \
    -isystem "/usr/include/$(uname -m)-linux-gnu/c++/12" \
    -idirafter "/usr/include/$(uname -m)-linux-gnu" -fno-asynchronous-unwind-tables \
    - <<<"$source" 2>&1); then
    echo "FAILED: it does not compile for $target: $assembly"
    failures=$((failures + 1))
    return
  fi
  expect "$target, data_head" "$(instructions "$assembly" publish)" "$2"
  expect "$target, data_tail" "$(instructions "$assembly" claim)" "$3"
}

check x86_64-linux-gnu 'movl \$7, .*movq \$8, ' 'movl \$7, .*movl \$9, '
check aarch64-linux-gnu 'str .*; dmb ish; .*str ' 'str .*str '
check riscv64-linux-gnu 'sw .*fence rw, ?w;.* sd ' 'sw .*sw '
check powerpc64le-linux-gnu 'stw .*lwsync;.* std ' 'stw .*stw '
check armv7-linux-gnueabihf 'str .*dmb ish;.*(strd|stm|str) ' 'str .*str '

[ $failures -eq 0 ] && echo "the barriers are there on every processor"
exit $((failures != 0))
