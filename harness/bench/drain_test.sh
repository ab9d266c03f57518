#!/usr/bin/env bash
# Tests the benchmark as a user runs it: the filter from its help, and Ctrl-C.
# usage: drain_test.sh DRAIN
set -u
drain=$1
. lib/perfring/testing/test.sh

# The filter shown by --help selects one line.
filter=$("$drain" --help | sed -n "s/.*--benchmark_filter REGEX//; /such as '/s/.*such as '\([^']*\)'.*/\1/p")
[ -n "$filter" ] || fail "--help gives no filter"
listed=$("$drain" --benchmark_list_tests --benchmark_filter="$filter")
[ "$listed" = 64K/8/count ] || fail "'$filter' names: $listed"

"$drain" --benchmark_filter=none >"$folder/out" 2>&1 && fail "a filter that matches nothing is accepted"
grep -q "no line matches" "$folder/out" || fail "a filter that matches nothing is not named"

# If it is interrupted after the first line, it ends with complete lines and complete JSON.
for signal in INT TERM; do
  rm -f "$folder/out" # left by the previous signal
  (
    trap - INT
    exec "$drain" --json "$folder/json" --benchmark_min_time=0.05
  ) >"$folder/out" 2>&1 &
  running=$!
  wait_until grep -qs "^64K/" "$folder/out"
  kill -s $signal $running
  wait $running
  status=$?
  [ $status -eq 3 ] || fail "SIG$signal ends it with $status: $(cat "$folder/out")"
  grep -q "Not shown: interrupted" "$folder/out" || fail "it does not say that it was interrupted"
  lines=$(grep -c "/count\|/sum" "$folder/out")
  [ "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["benchmarks"]))' <"$folder/json")" = \
    "$lines" ] || fail "the JSON does not hold $lines lines: $(tail -n 3 "$folder/json")"
done

# Every form of --json works. If the file cannot be written, the error says why.
quick=(--benchmark_filter='^64K/8/count$' --benchmark_min_time=0.01)
for form in "--json=$folder/form" "--json $folder/form"; do
  "$drain" $form "${quick[@]}" >"$folder/out" 2>&1 || fail "$form: $(cat "$folder/out")"
  [ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["verdict"])' <"$folder/form")" = holds ] ||
    fail "$form writes no verdict"
  rm "$folder/form"
done
"$drain" --json - "${quick[@]}" 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)' ||
  fail "--json - prints more than JSON"
# The tables of RESULTS.md and docs/speed.md, from measured lines and from a made-up run.
"$drain" --json - --benchmark_filter='^64K/(8|8.16)/count$' --benchmark_min_time=0.01 2>/dev/null |
  harness/bench/table >"$folder/table" || fail "a run makes no table"
grep -qE '^\| 64K/8/count \| (\*\*)?[0-9]+\.[0-9]{2}' "$folder/table" &&
  grep -qE '^\| 64K/8\\\|16/count ' "$folder/table" && grep -qE '^\| 8 or 16, at random \| [0-9]' "$folder/table" ||
  fail "the tables are: $(cat "$folder/table")"
made_up='{"benchmarks": [{"name": "8M/64/sum", "perfring/LB-spec": 1.204, "libbpf/PerfBuffer": 3.5},
  {"name": "64K/4096/count", "perfring/LB-spec": 2.19, "PerfBuffer/LB-spec live": 2.21, "libbpf/PerfBuffer": 3.5},
  {"name": "512K/64/sum", "perfring/LB-spec": 1.2, "perfring -O2/LB-spec -O2": 1.1},
  {"name": "64K/8|16/count", "perfring": 3.916, "perfring/LB-spec": 7, "perfring/LB-ptr": 1.21}]}'
harness/bench/table <<<"$made_up" | diff - <(printf '%s\n' \
  '| line | perfring / LB-spec | PerfBuffer / LB-spec live | perfring / LB-spec, -O2 | PerfBuffer / LB-spec, -O2 | perfring / LB-ptr | libbpf / PerfBuffer |' \
  '|---|---|---|---|---|---|---|' \
  '| 8M/64/sum | 1.20 |  |  |  |  | 3.50 |' \
  '| 64K/4096/count | 2.19 | **2.21** |  |  |  | **3.50** |' \
  '| 512K/64/sum | **1.20** |  | 1.10 |  |  |  |' \
  '| 64K/8\|16/count | 7.00 |  |  |  | **1.21** |  |' '' \
  '| payload | perfring | LB-spec | LB-ptr | libbpf |' '|---|---|---|---|---|' '| 4096 |  |  |  |  |' \
  '| 8 or 16, at random | 3.92 |  |  |  |') || fail "another table of the run that was made up"
for odd in '' '[]' '{"benchmarks": []}' '{"benchmarks": [{"name": "8M"}]}'; do
  harness/bench/table <<<"$odd" 2>"$folder/output"
  [ $? -eq 2 ] && grep -q 'not a run of the benchmark' "$folder/output" || fail "'$odd': $(cat "$folder/output")"
done
refused() { # TEXT OPTION...
  local text=$1
  shift
  "$drain" "$@" "${quick[@]}" >"$folder/out" 2>&1
  local status=$?
  [ $status -eq 2 ] && grep -qe "$text" "$folder/out" || fail "$*: $status: $(cat "$folder/out")"
}
refused "is given 2 times" --json a --json b
refused "'' is not accepted" --json ''
refused "/dev/full' cannot be written: No space left" --json /dev/full
refused "'--benchmark_format=json' is not an option" --benchmark_format=json
refused "cannot be given together with --benchmark_list_tests" --benchmark_list_tests
for filter in "(" "$(printf '%0300d' 0)" $'zz\e]0;owned\a'; do
  "$drain" --benchmark_list_tests --benchmark_filter "$filter" >"$folder/out" 2>&1
  status=$?
  [ $status -eq 2 ] || fail "the filter '$filter' ends with $status"
  grep -q $'[\e\a]' "$folder/out" && fail "a filter is printed as a terminal acts on it"
done
timeout -s KILL 10 "$drain" --benchmark_list_tests --benchmark_filter 'a********************************b' \
  >"$folder/out" 2>&1
[ $? -eq 2 ] || fail "a filter that matches nothing takes for ever"
for variable in BENCHMARK_OUT=/nowhere/x BENCHMARK_OUT_FORMAT=zz BENCHMARK_FORMAT=zz BENCHMARK_FILTER=none; do
  env "$variable" "$drain" "${quick[@]}" >"$folder/out" 2>&1 || fail "$variable: $(cat "$folder/out")"
  grep -q '^64K/8/count' "$folder/out" || fail "$variable: nothing is measured"
done
"$drain" --benchmark_min_time=-1 >"$folder/out" 2>&1 && fail "a negative time is accepted"

finish "the filter matches, and an interrupt leaves whole lines"
