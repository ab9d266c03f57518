#!/usr/bin/env bash
# Reads the assembly of HardwareMemory: clang compiles it for each processor that reorders, and the
# instructions must be the barriers that the kernel's protocol requires, in the right places. No
# test that runs on x86 can tell whether a fence is there.
# usage: fences_test.sh FOLDER-OF-lib
set -u
include=$1
. lib/perfring/testing/test.sh
# shellcheck source=lib/perfring/testing/assembly.sh
. lib/perfring/testing/assembly.sh

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
extern "C" Position heads(const SharedPosition& field) {
  return M::read_once(field) + M::read_once(field);
}
extern "C" void tails(SharedPosition& field) {
  M::write_once(field, 0x100000002);
  M::write_once(field, 0x300000004);
}
extern "C" std::uint32_t typed(float& at) {
  at = 1;
  const auto value = M::read<std::uint32_t>(reinterpret_cast<const std::byte*>(&at));
  at = 2;
  return value;
}
extern "C" Position shared(SharedPosition& field) {
  field = 1;
  const Position value = M::read_once(field);
  field = 2;
  return value;
}
'

# TARGET, then regular expressions: for the load of the head and its fence, for the fence and the
# store of the tail, and for two loads.
check() {
  local target=$1 assembly
  compile clang-19 --target="$target" || return
  expect "$target, data_head" "$(instructions "$assembly" head)" "$2"
  expect "$target, data_tail" "$(instructions "$assembly" tail)" "$3"
  expect "$target, two reads" "$(instructions "$assembly" twice)" "$4"
}

check x86_64-linux-gnu 'mov[lq] .*\(%rdi\)' '(mfence|lock).*;.*mov.*\(%rdi\)' '\(%rdi\).*\(%rdi\)'
check aarch64-linux-gnu 'ldr .*; dmb ishld' 'dmb ish; str ' 'ldr .*ldr '
check riscv64-linux-gnu '(lw|ld) .*; fence r, ?rw' 'fence rw, ?rw; sd ' 'ld .*ld '
check powerpc64le-linux-gnu '(lwz|ld) .*; lwsync' '; ?sync; std|^ ?sync; std' 'ld .*ld '
check s390x-linux-gnu '(l|lg|llgf|ng) ' 'bcr 1[45], ?(0|%r0); stg ' 'lg .*lg '

# 32-bit hosts: data_head is one load of its low word, which is at +4 if the high word comes first.
check armv7-linux-gnueabihf 'ldr r0, \[r0\]; dmb ish' 'dmb ish;.*(strd|stm|str)' 'ldr.*ldr'
check i686-linux-gnu 'movl \(%e..\), %eax' '(mfence|lock).*;.*mov' 'mov.*mov'
check powerpc-linux-gnu 'lwz 3, 4\(3\); lwsync' '(^|; ?) ?sync;.*stw' 'lwz.*lwz'

# Each access must be compiled, whatever accesses surround it and whatever type the bytes were
# written as. COMPILER and its options, then regular expressions: for two loads of data_head, for
# two stores of data_tail, and for a load between two stores, of floats and of whole positions.
check_once() {
  local target=$1 assembly
  # shellcheck disable=SC2086
  compile $target || return
  expect "$target, two reads of data_head" "$(instructions "$assembly" heads)" "^ $2"
  expect "$target, two writes of data_tail" "$(instructions "$assembly" tails)" "^ $3"
  expect "$target, a word written as another type" "$(instructions "$assembly" typed)" "^ $4"
  expect "$target, a position written by its own type" "$(instructions "$assembly" shared)" "^ $5"
}

check_once "clang-19 --target=x86_64-linux-gnu" 'mov[lq] \(%rdi\), .*mov[lq] \(%rdi\), ' \
  'mov.* 0x100000002; movq %..., \(%rdi\); mov.* 0x300000004; movq %..., \(%rdi\)' \
  'movl .*, \(%rdi\).*movl \(%rdi\), %eax; movl .*, \(%rdi\)' \
  'movq \$1, \(%rdi\); movq \(%rdi\), %rax; movq \$2, \(%rdi\)'
check_once "clang-19 --target=i686-linux-gnu" '.*movl \(%e..\), %e..; movl \(%e..\), %e..; add' \
  '.*movl \$1, 4\(%eax\); movl \$2, \(%eax\); movl \$3, 4\(%eax\); movl \$4, \(%eax\); ret' \
  '.*movl .*, \(%ecx\).*movl \(%ecx\), %eax; movl .*, \(%ecx\)' \
  '.*movl \$1, \(%ecx\); movl \(%ecx\), %eax; .*movl \$2, \(%ecx\)'
check_once "clang-19 --target=powerpc-linux-gnu" 'lwz ., 4\(3\); lwz ., 4\(3\); add' \
  'li 4, 2; stw 4, 4\(3\); li 4, 1; stw 4, 0\(3\); li 4, 4; stw 4, 4\(3\); li 4, 3; stw 4, 0\(3\)' \
  '.*stw .*lwz .*stw ' '.*stw.*lwz .*stw '
# gcc relies more on the rule that some types do not alias.
if [ "$(uname -m)" = x86_64 ]; then
  check_once g++ 'mov[lq] \(%rdi\), .*mov[lq] \(%rdi\), ' \
    'mov.*; movq %..., \(%rdi\);.* movq %..., \(%rdi\)' \
    'movl .*, \(%rdi\).*movl \(%rdi\), %eax; movl .*, \(%rdi\)' \
    'movq \$1, \(%rdi\); movq \(%rdi\), %rax; movq \$2, \(%rdi\)'
  check_once "g++ -m32" '.*movl \(%e..\), %e..; (movl \(%e..\), %e..; add|addl \(%e..\), %e)' \
    '.*movl \$2, \(%eax\); movl \$1, 4\(%eax\); movl \$4, \(%eax\); movl \$3, 4\(%eax\); ret' \
    '.*movl .*, \(%eax\).*movl \(%eax\), %e..; movl .*, \(%eax\)' \
    '.*movl \$1, \(%eax\);.* movl \(%eax\), %e..;.* movl \$2, \(%eax\)'
fi

# ThreadSanitizer's policy has the same barriers, and announces an edge after each.
source=${source//HardwareMemory/TsanMemory}
source=${source//hardware_memory/tsan_memory}
check aarch64-linux-gnu 'ldr .*; dmb ishld;.* bl __tsan_acquire' 'dmb ish;.* bl __tsan_release;.*str ' 'ldr .*ldr '

finish "the fences are there on every processor"
