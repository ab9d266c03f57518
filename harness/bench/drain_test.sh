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

# Interrupted when the first of the lines is there, it ends with whole lines and whole JSON.
for signal in INT TERM; do
  (trap - INT; exec "$drain" --json "$folder/json" --benchmark_min_time=0.05) >"$folder/out" 2>&1 &
  running=$!
  for _ in $(seq 600); do
    grep -q "^64K/" "$folder/out" && break
    sleep 0.1
  done
  kill -s $signal $running
  wait $running
  status=$?
  [ $status -eq 0 ] || fail "SIG$signal ends it with $status: $(cat "$folder/out")"
  grep -q "Interrupted" "$folder/out" || fail "it does not say that it was interrupted"
  lines=$(grep -c "/count\|/sum" "$folder/out")
  [ "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["benchmarks"]))' <"$folder/json")" = \
    "$lines" ] || fail "the JSON holds something else than $lines lines: $(tail -n 3 "$folder/json")"
done

[ $failures -eq 0 ] && echo "the filter matches, and an interrupt leaves whole lines"
exit $((failures != 0))
