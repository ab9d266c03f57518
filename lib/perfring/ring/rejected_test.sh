#!/usr/bin/env bash
# What the compiler must refuse: a drain whose result nobody looks at, and callbacks of the wrong
# shape. Each snippet differs from one that compiles in the marked place only.
# usage: rejected_test.sh COMPILER FOLDER-OF-lib
set -u
compiler=$1
lib=$2
failures=0
header=perfring/ring/ring.h
drained="Ring<>"

compile() { # BODY, prints diagnostics
  "$compiler" -x c++ -std=c++2b -Wall -Wextra -Werror -fsyntax-only -I"$lib" - 2>&1 <<END
#include "$header"
using namespace perfring;
using Flow = ControlFlow<int, int>;
void test([[maybe_unused]] $drained& ring) { $1; }
END
}

accepts() {
  local said
  said=$(compile "$1") || { echo "FAILED: not accepted: $1"; echo "$said"; failures=$((failures + 1)); }
}

rejects() { # BODY, then what the diagnostic must say
  local said
  if said=$(compile "$1"); then
    echo "FAILED: accepted: $1"
    failures=$((failures + 1))
  elif ! grep -qE "$2" <<<"$said"; then
    echo "FAILED: rejected for another reason than '$2': $1"
    echo "$said"
    failures=$((failures + 1))
  fi
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

# PerfBuffer's drains are refused as Ring's are.
header=perfring/perf_buffer.h
drained=PerfBuffer
accepts "static_cast<void>(ring.fold(0, [](int n, PerfEvent) { return n; }))"
rejects "ring.fold(0, [](int n, PerfEvent) { return n; })" "unused-result|nodiscard"
rejects "ring.try_fold(0, $next)" "unused-result|nodiscard"

[ $failures -eq 0 ] && echo "all refused, and all else accepted"
exit $((failures != 0))
