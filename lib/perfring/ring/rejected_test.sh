#!/usr/bin/env bash
# The compiler must refuse these: a drain with an unused result, callbacks of the wrong shape,
# overload sets with a gap, invalid page counts. Each snippet differs in one place from one that
# compiles.
# usage: rejected_test.sh COMPILER FOLDER-OF-lib
set -u
. lib/perfring/testing/test.sh
compiler=$1
lib=$2

echo '#include "perfring/perfring.h"
#include "perfring/record/decode.h"
#include "perfring/merge/merge.h"
#include "perfring/snapshot/overwritable_ring.h"
#include <optional>' >"$folder/all.h"
options=(-std=c++2b -Wall -Wextra -Werror -I"$lib")
"$compiler" --version | grep -q clang && options+=(-ferror-limit=0)

compile() { # BODY..., the first in the file `body-0`, and so on; prints diagnostics
  local i=0
  {
    cat <<'END'
using namespace perfring;
using Flow = ControlFlow<int, int>;
template <class F> concept ForEach = requires(Ring<>& ring, F f) { ring.for_each(f); };
template <class F> concept While = requires(Ring<>& ring, F f) { ring.for_each_while(f); };
template <class F> concept ForEachOfBuffer = requires(PerfBuffer& ring, F f) { ring.for_each(f); };
template <class F> concept Fold = requires(Ring<>& ring, F f) { ring.fold(0, f); };
template <class F> concept TryFold = requires(Ring<>& ring, F f) { ring.try_fold(0, f); };
END
    for body; do
      printf '#line 1 "body-%d"\nvoid test%d([[maybe_unused]] Ring<>& ring, [[maybe_unused]] PerfBuffer& buffer,\n' $i $i
      printf '[[maybe_unused]] PerfEventArray& array) { %s; }\n' "$body"
      i=$((i + 1))
    done
  } | "$compiler" -x c++ "${options[@]}" -include "$folder/all.h" -fsyntax-only - 2>&1
}

# Compiles all snippets together, and each by itself only to find out which is at fault.
accepted=() rejected=() reasons=()
accepts() { accepted+=("$1"); }
rejects() { # BODY, then a regular expression for the diagnostic
  rejected+=("$1")
  reasons+=("$2")
}

compile_accepted() {
  local each output
  compile "${accepted[@]}" >/dev/null && return
  for each in "${accepted[@]}"; do output=$(compile "$each") || fail "not accepted: $each: $output"; done
  fail "not accepted, of all together"
}

# Whether the compiler has reported this reason for a body: in a line of the body; or in a line of a
# header, for an instantiation by the body, which g++ names before the error and clang after it.
is_said_of() { # BODY REASON
  BODY=body-$1: REASON=$2 awk '
    function mine() { return index($0, ENVIRON["BODY"]) == 1 }
    function right() { return match($0, " error: .*(" ENVIRON["REASON"] ")") }
    /^body-/ && / error: / { found = found || (mine() && right()); before = behind = 0; next }
    /^body-.*required from here/ { before = mine(); behind = 0; next }
    /^body-/ { found = found || (behind && mine()); behind = 0; next }
    / error: / { found = found || (before && right()); before = 0; behind = right() }
    END { exit !found }' "$folder/output"
}

compile_rejected() {
  local i output
  compile "${rejected[@]}" >"$folder/output" && fail "all are accepted"
  for i in "${!rejected[@]}"; do
    is_said_of "$i" "${reasons[i]}" && continue
    if output=$(compile "${rejected[i]}"); then
      fail "accepted: ${rejected[i]}"
    elif ! grep -qE "${reasons[i]}" <<<"$output"; then
      fail "rejected for another reason than '${reasons[i]}': ${rejected[i]}: $output"
    fi
  done
}

next='[](int n, PerfEvent) -> Flow { return Continue{n}; }'
accepts "if (ring.try_fold(0, $next).is_break()) return"
rejects "ring.try_fold(0, $next)" "unused-result|nodiscard"

accepts "ring.for_each([](PerfEvent) {})"
rejects "ring.for_each([](PerfEvent) { return 1; })" "constraint|no matching"
rejects "ring.for_each([](PerfEvent) -> Flow { return Continue{1}; })" "constraint|no matching"
rejects "ring.for_each([](int) {})" "constraint|no matching"

accepts "static_cast<void>(ring.fold(0, [](int n, PerfEvent) { return n; }))"
rejects "ring.fold(0, [](int n, PerfEvent) { return n; })" "unused-result|nodiscard"
rejects "static_cast<void>(ring.fold(0, [](int, PerfEvent) {}))" "constraint|no matching"

accepts "static_cast<void>(buffer.fold(0, [](int n, PerfEvent) { return n; }))"
rejects "buffer.fold(0, [](int n, PerfEvent) { return n; })" "unused-result|nodiscard"
rejects "buffer.try_fold(0, $next)" "unused-result|nodiscard"

accepts "static_cast<void>(ring.try_fold(0, $next))"
rejects "static_cast<void>(ring.try_fold(0L, $next))" "continue with the type of init"
rejects "static_cast<void>(ring.try_fold(0, [](int n, PerfEvent) { return n; }))" "returns a ControlFlow"
rejects "static_cast<void>(ring.try_fold(0, [](PerfEvent) -> Flow { return Continue{1}; }))" "constraint|no matching"

accepts "static_cast<void>(sizeof(ControlFlow<int, int>))"
rejects "static_cast<void>(sizeof(ControlFlow<int&, int>))" "ControlFlow carries values"
rejects "static_cast<void>(sizeof(ControlFlow<int, void>))" "ControlFlow carries values|void"
rejects "ControlFlow<Never, int>{Break{1}}" "no matching|no viable|cannot convert"

accepts "ring.for_each([](const PerfEvent& event) { static_cast<void>(std::get<Sample>(event)); })"
rejects "ring.for_each([](PerfEvent& event) { static_cast<void>(event); })" "constraint|no matching"
# A callback gets a const event, from which it cannot move. A constraint says so, which a caller can
# test, and not an error inside ring.h.
accepts "static_assert(ForEach<decltype([](PerfEvent) {})>)"
accepts "static_assert(!ForEach<decltype([](PerfEvent&&) {})>)"
accepts "static_assert(Fold<decltype([](int n, PerfEvent) { return n; })>)"
accepts "static_assert(!Fold<decltype([](int n, PerfEvent&&) { return n; })>)"
accepts "static_assert(TryFold<decltype([](int n, PerfEvent) -> Flow { return Continue{n}; })>)"
accepts "static_assert(!TryFold<decltype([](int n, PerfEvent&&) -> Flow { return Continue{n}; })>)"

# An overload set takes each kind of event, and all overloads return the same type.
sample='[](const Sample&) {}' lost='[](const Lost&) {}' malformed='[](const Malformed&) {}' any='[](const auto&) {}'
for drained in ring buffer; do
  accepts "$drained.for_each(Overloaded{$sample, $lost, $malformed})"
  accepts "$drained.for_each(Overloaded{$sample, $any})"
  rejects "$drained.for_each(Overloaded{$sample, $lost})" "constraint|no matching"
  rejects "$drained.for_each(Overloaded{$sample, $malformed})" "constraint|no matching"
  rejects "$drained.for_each(Overloaded{$lost, $malformed})" "constraint|no matching"
  rejects "$drained.for_each(Overloaded{})" "constraint|no matching"
  rejects "$drained.for_each($sample)" "constraint|no matching"
  rejects "$drained.for_each(Overloaded{$sample, $lost, [](const Malformed&) { return 1; }})" "constraint|no matching"
  accepts "$drained.for_each_while(Overloaded{[](const Sample&) { return true; }, [](const auto&) { return false; }})"
  rejects "$drained.for_each_while(Overloaded{[](const Sample&) { return true; }, $any})" "constraint|no matching"
  accepts "$drained.for_each_while([](const PerfEvent&) { return true; })"
  rejects "$drained.for_each_while([](const PerfEvent&) {})" "constraint|no matching"
  rejects "$drained.for_each_while([](const PerfEvent&) { return 1; })" "constraint|no matching"
done
# An overload for a non-const event would never be called: such a set does not handle every kind.
accepts "struct Some { void operator()(const Sample&) {} void operator()(const Lost&) {} void operator()(const Malformed&) {} }; ring.for_each(Some{})"
rejects "struct Some { void operator()(PerfEvent&) {} void operator()(const Sample&) {} void operator()(const Lost&) {} void operator()(const Malformed&) {} }; ring.for_each(Some{})" \
  "constraint|no matching"
accepts "static_assert(!ForEach<decltype($sample)> && !ForEachOfBuffer<decltype($sample)> && !While<decltype($any)>)"

# Braces are options, and integers are page counts, for a PerfBuffer and a PerfEventArray alike.
for opened in 'PerfBuffer::open(0' 'array.open(0'; do
  for rest in ')' ', {})' ', {64})' ', {64, 4096})' ', {.wakeup_watermark = 1})' ', {.page_count = 4})' ', 64)' ', 64UL)' ', short{2})' \
    ', PerfBufferOptions{})'; do
    accepts "static_cast<void>($opened$rest)"
  done
  for rest in ', true)' ', 64.0)' ', nullptr)' ', "64")' ', std::nullopt)' ', std::optional<std::size_t>{4})' \
    ', {64.0})' ', {-1})' ', {true})' ', {true, 4096})' ', {.page_count = true})' ', {true, true, true})' ', 64, 4096)'; do
    rejects "static_cast<void>($opened$rest)" "constraint|no matching|no viable|narrowing|cannot be narrowed|cannot convert|too many|ambiguous"
  done
done
# aya's later API, in which the size is mandatory.
for rest in ', {})' ', {64, 4096})' ', {.page_count = 4})' ', 64)' ', short{2})'; do
  accepts "static_cast<void>(PerfEventArrayBuffer::open(0$rest)"
done
for rest in ')' ', true)' ', 64.0)' ', {true})' ', nullptr)'; do
  rejects "static_cast<void>(PerfEventArrayBuffer::open(0$rest)" "constraint|no matching|no viable|deleted|narrowing|cannot convert"
done
# set() takes an entry's index and its event's descriptor in one order only, and its result must be
# used.
swap='const int fd = 7; const std::uint32_t cpu = 0;'
accepts "$swap if (!array.set(cpu, fd)) return"
rejects "$swap if (!array.set(fd, cpu)) return" "deleted"
rejects "if (!array.set(0, true)) return" "deleted"
rejects "if (!array.set(0, 7L)) return" "deleted"
rejects "if (!array.set(0, buffer)) return" "deleted"
rejects "array.set(0, 7)" "unused-result|nodiscard"
accepts "if (!array.unset(0)) return"
rejects "array.unset(0)" "unused-result|nodiscard"
for count in 64 64UL 'short{2}' -1; do accepts "static_cast<void>(OverwritableRing::open(array, 0, $count))"; done
for count in true 64.0 '{}' '{64}' nullptr '"64"'; do
  rejects "static_cast<void>(OverwritableRing::open(array, 0, $count))" "constraint|no matching"
done
accepts 'static_cast<void>(PerfEventArray::from_pin("/sys/fs/bpf/events"))'
rejects 'static_cast<void>(PerfEventArray::from_pin(7))' "invalid conversion|no known conversion|cannot convert|cannot initialize"
rejects 'static_cast<void>(PerfEventArray::from_fd("7"))' "invalid conversion|no known conversion|cannot convert|cannot initialize"

# A record's view refers to its layout, which must outlive it.
attr='const perf_event_attr attr{}; const record::Layout layout{attr};'
accepts "$attr static_cast<void>(record::decode({}, layout))"
rejects "$attr static_cast<void>(record::decode({}, record::Layout{attr}))" "deleted"
# A merge's window has 1 to 64 records.
for window in 1 3 64; do accepts "Merge<DefaultMemory, $window> merge"; done
for window in 0 65; do rejects "Merge<DefaultMemory, $window> merge" "a window is"; done

compile_accepted
compile_rejected
finish "all refused, and all else accepted"
