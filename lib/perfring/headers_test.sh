#!/usr/bin/env bash
# The headers as a user's compiler sees them. Every drain is instantiated.
# usage: headers_test.sh SUBJECT FOLDER-OF-lib COMPILER...   (those that are not installed are left out)
#   warnings        clean under warnings that this project does not enable, but a user may
#   standards       each header by itself: ring/ in C++20, all of them in C++23 and C++26
#   old_standards   each header stops an older standard with one line that says what to do
#   no_exceptions_no_rtti
#   size            the headers that perfring.h and ring.h include, and their number of lines
#   libcxx          headers and sources, with libc++
set -u
. lib/perfring/testing/test.sh
subject=$1
lib=$2
shift 2
compilers=0

drains='
unsigned long drained(DRAINED&);
unsigned long drained(DRAINED& ring) {
  using namespace perfring;
  unsigned long count = ring.fold(0UL, [](unsigned long n, const PerfEvent&) { return n + 1; });
  ring.for_each([&](const PerfEvent&) { ++count; });
  ring.for_each(Overloaded{[&](const Sample& sample) { count += sample.as<unsigned>().value_or(0); },
                           [&](const auto&) { ++count; }});
  if (!ring.for_each_while([](const PerfEvent&) { return true; })) return count;
  const auto flow = ring.try_fold(count, [](unsigned long n, PerfEvent) -> ControlFlow<int, unsigned long> {
    return Continue{n};
  });
  return flow.is_break() || to_string(Defect::BadSize) == nullptr ? 0 : count;
}
'
pulled='
unsigned long pulled(perfring::Cursor<>&);
unsigned long pulled(perfring::Cursor<>& cursor) {
  unsigned long count = cursor.look() + cursor.bytes().first.size() + cursor.unread();
  while (const auto record = cursor.next()) {
    count += record->event().index() + record->header().size + record->head().size() + record->size();
    cursor.release(record->end());
  }
  cursor.release_bytes(8);
  cursor.release();
  return count + cursor.data_head() + static_cast<unsigned long>(cursor.data_tail());
}
'
merged='
unsigned long merged(perfring::Merge<>&);
unsigned long merged(perfring::Merge<>& merge) {
  unsigned long count = 0;
  const auto each = [&](const perfring::Ordered& ordered) { count += ordered.ring; };
  merge.run(perfring::KeyAt{8}, [] { return std::uint64_t{1}; }, each, 5);
  if (merge.flush(perfring::KeyAt{}, [](const perfring::Ordered&) { return false; }) != perfring::MergeEnd::Nested)
    count += merge.rings() + merge.slack() + merge.counts().late;
  return count;
}
'
ring="#include \"perfring/ring/ring.h\"
#include \"perfring/ring/cursor.h\"
#include \"perfring/merge/merge.h\"
${drains//DRAINED/perfring::Ring<>}${pulled}${merged}"
all="#include \"perfring/perfring.h\"
#include \"perfring/sampler/group.h\"
#include \"perfring/sampler/sampler.h\"
#include \"perfring/event/tracepoint_fields.h\"
#include \"perfring/record/layouts.h\"
#include \"perfring/record/to_string.h\"
#include \"perfring/record/whole.h\"
#include \"perfring/snapshot/overwritable_ring.h\"
#include \"perfring/rings/ring_set.h\"
${drains//DRAINED/perfring::Ring<>}${drains//DRAINED/perfring::PerfBuffer}
${drains//DRAINED/perfring::PerfEventArrayBuffer}${pulled}${merged}
unsigned long records(perfring::Bytes, const perfring::record::Layouts&);
unsigned long records(perfring::Bytes bytes, const perfring::record::Layouts& layouts) {
  return to_string(decode(perfring::record::whole(bytes, {}, {}), layouts)).size();
}
unsigned long awaited(perfring::RingSet&);
unsigned long awaited(perfring::RingSet& set) {
  unsigned long count = 0;
  const auto each = [&](std::uint32_t cpu, const perfring::PerfEvent&) { count += cpu; };
  const auto ordered = [&](std::uint32_t, const perfring::Ordered& event) { return event.late; };
  set.drain(each);
  set.drain_fullest({.events = 5}, each);
  set.merge(perfring::KeyAt{}, {}, ordered);
  if (!set.flush(perfring::Flush::Complete, each) || !set.flush(perfring::Flush::Visible, perfring::KeyAt{}, ordered))
    set.stop();
  return set.wait() == perfring::Woken::Stop ? count : 0;
}
unsigned long sampled(perfring::event::Sampler&, const perfring::event::TracepointFormat&);
unsigned long sampled(perfring::event::Sampler& sampler, const perfring::event::TracepointFormat& format) {
  unsigned long count = 0;
  const auto field = format.field<int>(\"pid\");
  sampler.for_each([&](const perfring::event::Delivered& each) { count += each.bytes.size(); });
  sampler.flush([&](const perfring::event::Delivered& each) { return field && !field->of(each.bytes); });
  return count;
}
bool recorded(perfring::OverwritableRing&);
bool recorded(perfring::OverwritableRing& ring) {
  const auto each = [](const perfring::PerfEvent&) { return true; };
  return ring.snapshot(perfring::Settle::Quickly, each) || ring.copy(64, each);
}
bool opened(perfring::PerfEventArray&);
bool opened(perfring::PerfEventArray& array) {
  return array.open(0, {}) && array.open(0, 64) && perfring::PerfBuffer::open(0, {64}) && perfring::online_cpus();
}
"

# The names that the examples of these headers use must be declared without perfring.h, too.
of_rings='#include "perfring/rings/ring_set.h"
const char* first(); const char* first() {
  const std::expected<std::vector<std::uint32_t>, perfring::OnlineCpusError> cpus = perfring::online_cpus();
  return cpus ? PERFRING_VERSION : nullptr;
}
'
of_events='#include "perfring/sampler/sampler.h"
const char* version(); const char* version() { return PERFRING_VERSION; }
'

compile() { # SOURCE COMPILER OPTION..., prints diagnostics
  local source=$1
  shift
  "$@" -x c++ -I"$lib" - 2>&1 <<<"$source"
}

accepts() { # WHAT SOURCE COMPILER OPTION...
  local what=$1 output
  shift
  output=$(compile "$@" -Werror -fsyntax-only) || fail "$what: ${*:2}"$'\n'"$output"
}

rejects() { # WHAT SOURCE COMPILER OPTION...: checks that the test would notice it
  local what=$1
  shift
  compile "$@" -Werror -fsyntax-only >/dev/null && fail "$what is not seen: ${*:2}"
}

is_clang() { [[ $("$1" --version) == *clang* ]]; }

# The headers for which C++20 suffices, and those that need C++23.
headers20=()
headers23=()
while IFS= read -r header; do
  case $header in
    perfring/testing/* | perfring/export.h | perfring/version.h) ;;
    perfring/ring/* | perfring/merge/* | perfring/record/* | perfring/snapshot/snapshot.h | \
      perfring/rings/ring_set_options.h | perfring/rings/round.h | perfring/wait/wakeups.h | perfring/control_flow.h | \
      perfring/perf_event.h) headers20+=("$header") ;;
    *) headers23+=("$header") ;;
  esac
done < <(cd "$lib" && find -L perfring -name '*.h' | sort)
together=$(printf '#include "%s"\n' "${headers20[@]}" "${headers23[@]}")
[ ${#headers20[@]} -ge 8 ] && [ ${#headers23[@]} -ge 10 ] || fail "only these headers: ${headers20[*]} ${headers23[*]}"

# -O2 -c, because some of g++'s warnings come from its optimizer.
gcc_warnings=(-O2 -c -o /dev/null -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Warith-conversion -Wshadow
  -Wuseless-cast -Wold-style-cast -Wcast-qual -Wduplicated-cond
  -Wduplicated-branches -Wlogical-op -Wnull-dereference -Wdouble-promotion -Wformat=2
  -Wswitch-default -Wswitch-enum -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wundef
  -Wredundant-decls -Wmissing-declarations -Wzero-as-null-pointer-constant)
# Except for: incompatibility with C++98 and C++20, the layout of structs, and pointer arithmetic
# and spans made from pointers, which every ring needs.
clang_warnings=(-fsyntax-only -Weverything -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-c++20-compat
  -Wno-padded -Wno-unsafe-buffer-usage)

warnings() {
  local options=("${gcc_warnings[@]}")
  ! is_clang "$1" || options=("${clang_warnings[@]}")
  local output
  output=$(compile "$together"$'\n'"$all" "$1" -std=c++2b "${options[@]}" -Werror) ||
    fail "$1 warns:"$'\n'"$output"
  rejects "a warning" "int f(int n); int f(int n) { switch (n) { case 1: return 1; } return 0; }" \
    "$1" -std=c++2b "${options[@]}"
}

# Prints this compiler's option for a standard after C++23: g++ 12 has none.
newest() {
  compile "" "$1" -std=c++2c -fsyntax-only >/dev/null 2>&1 && echo c++2c
}

# Each header alone in the oldest standard that it supports, and all together in the others.
standards() {
  local header standard
  for header in "${headers20[@]}"; do
    accepts "$header alone" "#include \"$header\"" "$@" -std=c++20 -pedantic-errors
  done
  for header in "${headers23[@]}"; do
    accepts "$header alone" "#include \"$header\"" "$@" -std=c++2b -pedantic-errors
  done
  accepts "ring_set.h by itself" "$of_rings" "$@" -std=c++2b -Wall -Wextra -pedantic-errors
  accepts "sampler.h by itself" "$of_events" "$@" -std=c++2b -Wall -Wextra -pedantic-errors
  accepts "ring/ in C++20" "$ring" "$@" -std=c++20 -Wall -Wextra -pedantic-errors
  for standard in c++2b $(newest "$1"); do
    accepts "perfring in $standard" "$together"$'\n'"$all" "$@" -std=$standard -Wall -Wextra -pedantic-errors
  done
}

# Each header stops with one error of its own, before it includes another one: if it did not, one of
# the two orders would show the other header's error.
stops() { # STANDARD REGEX COMPILER HEADER...
  local standard=$1 regex=$2 compiler=$3 options=(-fsyntax-only) includes output errors header order
  shift 3
  ! is_clang "$compiler" || options+=(-ferror-limit=0)
  includes=$(printf '#include "%s"\n' "$@")
  for order in cat tac; do
    output=$(compile "$($order <<<"$includes")" "$compiler" "-std=$standard" "${options[@]}") &&
      fail "$compiler takes $* as $standard"
    errors=$(grep -E 'error: ' <<<"$output")
    for header in "$@"; do
      [ "$(grep -cE "(^|/)$header:[0-9:]+ (fatal )?error: .*$regex" <<<"$errors")" = 1 ] ||
        fail "$header as $standard stops $compiler with:"$'\n'"$output"
    done
    [ "$(wc -l <<<"$errors")" = $# ] && ! grep -qE '(^| )from .*perfring/' <<<"$output" ||
      fail "$compiler says more of $* as $standard:"$'\n'"$output"
  done
}

old_standards() {
  local cxx20='needs C\+\+20: compile with -std=c\+\+20'
  local cxx23='needs C\+\+23: compile with -std=c\+\+23 \(g\+\+ 12, clang 19 or later\)'
  stops c++17 "$cxx20" "$1" "${headers20[@]}"
  stops c++20 "$cxx23" "$1" "${headers23[@]}"
  stops c++11 "needs C\+\+2" "$1" perfring/perfring.h perfring/ring/ring.h
  # A compiler that accepts the standard's name, but supports too little of it for libstdc++'s
  # std::expected.
  ! command -v clang-14 >/dev/null || stops c++2b "\\(g\\+\\+ 12, clang 19 or later\\)" clang-14 perfring/perfring.h
  accepts "macros in C++98" '#include "perfring/version.h"
#include "perfring/export.h"' "$1" -std=c++98
}

no_exceptions_no_rtti() {
  local without=(-fno-exceptions -fno-rtti)
  accepts "perfring" "$all" "$1" -std=c++2b "${without[@]}" -Wall -Wextra
  accepts "ring/" "$ring" "$1" -std=c++20 "${without[@]}" -Wall -Wextra
  rejects "a throw" "void f(); void f() { throw 1; }" "$1" -std=c++2b "${without[@]}"
  rejects "a typeid" "#include <typeinfo>
const char* f(int& n); const char* f(int& n) { return typeid(n).name(); }" "$1" -std=c++2b "${without[@]}"
}

# Counts our own lines and lists the includes, because the standard library's headers differ in size
# from release to release. (Under g++ 12 <filesystem>, <memory>, <functional> and <algorithm> would
# add as many lines as there are now.)
own_lines() { # HEADER COMPILER OPTION...: without blank lines and comments
  compile "#include \"$1\"" "${@:2}" -E |
    awk -v folder="\"$lib/" '/^# [0-9]+ "/ { own = index($3, folder) == 1; next }
      own && NF { ++lines } END { print lines + 0 }'
}

included() { # HEADER COMPILER OPTION...: the foreign headers that it and ours include
  compile "#include \"$1\"" "${@:2}" -M | tr -s ' \\' '\n' | grep "^$lib/" |
    xargs sed -nE 's/^#include <(.*)>.*/\1/p' | sort -u | xargs
}

# HEADER STANDARD MOST-LINES INCLUDED COMPILER...
is_small() {
  local header=$1 standard=$2 most=$3 wanted=$4 lines output
  shift 4
  lines=$(own_lines "$header" "$@" "-std=$standard")
  [ "$lines" -gt 200 ] && [ "$lines" -le "$most" ] || fail "$header has $lines lines of ours, preprocessed by $*"
  output=$(included "$header" "$@" "-std=$standard")
  [ "$output" = "$wanted" ] || fail "$header includes: $output"$'\n'"in place of: $wanted"
}

size() {
  local of_ring='bit concepts cstddef cstdint linux/perf_event.h optional span type_traits utility variant'
  local of_all='bit cassert cerrno concepts cstddef cstdint expected linux/bpf.h linux/perf_event.h optional span string
    string_view sys/mman.h sys/types.h system_error type_traits unistd.h utility variant vector version'
  is_small perfring/ring/ring.h c++20 650 "$of_ring" "$1"
  is_small perfring/perfring.h c++2b 1150 "$(xargs <<<"$of_all")" "$1"
}

libcxx() {
  local program sources
  accepts "libc++ (ci/setup package installs it)" "#include <version>
static_assert(_LIBCPP_VERSION >= 190000);" "$1" -std=c++2b -stdlib=libc++
  standards "$1" -stdlib=libc++
  program=$folder/program
  # The sources, and a program that uses all of them.
  mapfile -t sources < <(find -L "$lib/perfring" -name testing -prune -o -name '*.cc' -print |
    grep -v '_test\.cc$')
  "$1" -std=c++2b -stdlib=libc++ -Wall -Wextra -Werror -I"$lib" -o "$program" \
    "${sources[@]}" "$lib/perfring/no_exceptions_test.cc" ||
    fail "the sources do not build with libc++"
  "$program" || fail "a program built with libc++ ends with $?"
}

for compiler in "$@"; do
  command -v "$compiler" >/dev/null || continue
  compilers=$((compilers + 1))
  "$subject" "$compiler"
done

[ $compilers -gt 0 ] || fail "no compiler"
finish "$subject: as it should be under $compilers compilers"
