#!/usr/bin/env bash
# Reads the assembly of the code that takes a length out of a record. A length must be loaded once:
# if it were loaded twice, the value that is used could differ from the one that was checked,
# because the bytes may change meanwhile. No test that runs can tell.
# usage: loads_test.sh FOLDER-OF-lib
set -u
include=$1
. lib/perfring/testing/test.sh
# shellcheck source=lib/perfring/testing/assembly.sh
. lib/perfring/testing/assembly.sh

# Prints the instructions of one function, in one line. ASM marks the empty asm of load_once(),
# which hides the value from the compiler.
with_marks() { # ASSEMBLY FUNCTION
  instructions "$(sed 's/^[[:space:]]*#APP.*/\tasm/' <<<"$1")" "$2" | sed 's/ asm;/ ASM;/g'
}

# With more values than registers, a compiler that may load a value again does not keep it: g++
# loads the length from memory a second time.
source='
#include "perfring/record/decode.h"
using perfring::record::internal::Walk;
using Word = std::uint64_t;
extern "C" std::byte record[64];
template <class T>
[[gnu::always_inline]] inline Word under_pressure(const Word* k, T (*get)()) {
  const Word length = get();
  Word all = length;
  asm("# %0" : "+r"(all));
  Word a = k[0], b = k[1], c = k[2], d = k[3], e = k[4], f = k[5], g = k[6], h = k[7], i = k[8];
  Word j = k[9], l = k[10], m = k[11], n = k[12], o = k[13];
  asm("# %0" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h), "+r"(i),
      "+r"(j), "+r"(l), "+r"(m), "+r"(n), "+r"(o));
  return (all + a + b + c + d + e + f + g + h + i + j + l + m + n + o) ^ length;
}
template <class T>
T length() { return Walk{record, 8, 64}.length<T>("nr"); }
extern "C" Word byte(const Word* k) { return under_pressure<std::uint8_t>(k, length); }
extern "C" Word half(const Word* k) { return under_pressure<std::uint16_t>(k, length); }
extern "C" Word word(const Word* k) { return under_pressure<std::uint32_t>(k, length); }
extern "C" Word whole(const Word* k) { return under_pressure<Word>(k, length); }
extern "C" Word once(const Word* k) {
  return under_pressure<Word>(k, [] { return perfring::record::internal::load_once<Word>(record + 8); });
}
extern "C" Word again(const Word* k) {
  return under_pressure<Word>(k, [] { return perfring::record::internal::load<Word>(record + 8); });
}
'
count_loads() { # COMPILER LOADS-OF-A-VALUE-THAT-MAY-BE-LOADED-AGAIN
  local function loads assembly
  # shellcheck disable=SC2086
  compile $1 -fno-pic || return
  for function in byte half word whole once; do
    loads=$(instructions "$assembly" $function | grep -o '[^;]*record[^;]*;' | wc -l)
    [ "$loads" = 1 ] || fail "$1: $loads loads of a length in $function: $assembly"
  done
  # With a compiler that keeps every value, the test above shows nothing.
  loads=$(instructions "$assembly" again | grep -o '[^;]*record[^;]*;' | wc -l)
  [ "$loads" = "$2" ] || fail "$1: $loads loads of a value that may be loaded again, not $2"
}
if [ "$(uname -m)" = x86_64 ]; then count_loads g++ 2; fi
count_loads "clang-19 --target=x86_64-linux-gnu" 1

# Every function that takes a length, or that looks a value up and then uses it, must do so by
# load_once(). (g++ prints nothing for an empty asm.)
source='
#include "perfring/event/tracepoint_fields.h"
#include "perfring/record/decode.h"
#include "perfring/record/layouts.h"
using namespace perfring;
extern "C" [[gnu::flatten]] bool header(const std::byte* at, std::size_t size, const record::Layout& layout) {
  const record::Any any = record::decode(Bytes{at, size}, layout);
  return std::holds_alternative<record::Malformed>(any);
}
extern "C" [[gnu::flatten]] bool headers(const std::byte* at, std::size_t size, const record::Layouts& layouts) {
  const record::Any any = record::decode(Bytes{at, size}, layouts);
  return std::holds_alternative<record::Malformed>(any);
}
extern "C" std::size_t dumped(const record::Sample& sample) {
  return sample.stack_user()->dumped().size();
}
extern "C" std::size_t text(const event::TextField& field, const std::byte* at, std::size_t size) {
  return field.of(Bytes{at, size})->size();
}
extern "C" void frame(record::Frames::Iterator& at) { ++at; }
extern "C" const record::Layout* after(const record::Layouts& layouts, const std::byte* at) {
  return layouts.find_after(Bytes{at, 64}, 8);
}
'
compile clang-19 --target=x86_64-linux-gnu
for function in dumped text frame after; do
  expect "$function" "$(with_marks "$assembly" $function)" ' ASM;'
done
# The load is the first access to memory, and ASM follows at once: the loaded value is the one
# checked.
for function in header headers; do
  expect "$function" "$(with_marks "$assembly" $function)" \
    '^([^(]*;)? movq \(%r[a-z0-9]+\), %r[a-z0-9]+;( (push|mov|sub|lea|xor)[^;]*;)* ASM;'
done

finish "each length is loaded once"
