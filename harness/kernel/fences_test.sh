#!/usr/bin/env bash
# Checks the assembly of HardwareCpu for processors that reorder: the kernel side's barriers must be
# in place, and the compiler must not have moved any access across them. No test that runs on x86 can
# detect a missing fence, and ThreadSanitizer gets each edge from an annotation, not from the fence.
# usage: fences_test.sh
set -u
include=.
. lib/perfring/testing/test.sh
# shellcheck source=lib/perfring/testing/assembly.sh
. lib/perfring/testing/assembly.sh

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

# check TARGET PUBLISH CLAIM: PUBLISH is a regular expression for the record, the barrier and
# data_head; CLAIM is one for the two stores around the read of data_tail.
check() {
  local target=$1 assembly
  compile clang-19 --target="$target" || return
  expect "$target, data_head" "$(instructions "$assembly" publish)" "$2"
  expect "$target, data_tail" "$(instructions "$assembly" claim)" "$3"
}

check x86_64-linux-gnu 'movl \$7, .*movq \$8, ' 'movl \$7, .*movl \$9, '
check aarch64-linux-gnu 'str .*; dmb ish; .*str ' 'str .*str '
check riscv64-linux-gnu 'sw .*fence rw, ?w;.* sd ' 'sw .*sw '
check powerpc64le-linux-gnu 'stw .*lwsync;.* std ' 'stw .*stw '
check armv7-linux-gnueabihf 'str .*dmb ish;.*(strd|stm|str) ' 'str .*str '

finish "the barriers are there on every processor"
