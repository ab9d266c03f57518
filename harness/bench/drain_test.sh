#!/usr/bin/env bash
# The benchmark as a user meets it: the filter that its help gives, and Ctrl-C.
# usage: drain_test.sh DRAIN
set -u
drain=$1
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# The filter of --help names one line.
filter=$("$drain" --help | sed -n "s/.*--benchmark_filter=REGEX.*such as '\(.*\)'.*/\1/p")
[ -n "$filter" ] || fail "--help gives no filter"
listed=$("$drain" --benchmark_list_tests=true --benchmark_filter="$filter")
[ "$listed" = 64K/8/count ] || fail "'$filter' names: $listed"

"$drain" --benchmark_filter=none >"$folder/out" 2>&1 && fail "a filter that matches nothing is accepted"
grep -q "no line matches" "$folder/out" || fail "a filter that matches nothing is not named"

[ $failures -eq 0 ] && echo "the filter matches"
exit $((failures != 0))
