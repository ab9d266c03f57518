#!/usr/bin/env bash
# Tests the benchmark of waiting as a user runs it: its table, its JSON, and a run without privileges.
# usage: wait_test.sh WAIT
set -u
wait=$1
. lib/perfring/testing/test.sh

# Every attempted output is delivered or lost; otherwise the exit code is 1.
quick=(--seconds 0.05 --rounds 1 --rates 1000 100000)
"$wait" "${quick[@]}" --json "$folder/json" >"$folder/out" 2>&1
status=$?
grep -q "^256 idle rings: [0-9]* ns to read all heads" "$folder/out" || fail "no row for idle rings: $(cat "$folder/out")"
value() { # NAME FIGURE
  python3 -c 'import json, sys
lines = {each["name"]: each for each in json.load(open(sys.argv[1]))["benchmarks"]}
print(lines[sys.argv[2]][sys.argv[3]])' "$folder/json" "$1" "$2"
}
[ "$(value idle/256 "heads ns" | cut -d. -f1)" -gt 0 ] || fail "no figure for idle rings"
if [ $status -eq 0 ]; then
  for rate in 1000 100000; do
    for figure in "RingSet CPU %" "RingSet write ns" "RingSet p99 us" "libbpf CPU %" "libbpf write ns" "libbpf p99 us" \
      "libbpf/RingSet CPU" "libbpf/RingSet write" "libbpf/RingSet p99"; do
      [ -n "$(value wait/$rate "$figure")" ] || fail "no $figure at $rate records a second"
    done
  done
  [ "$(grep -c "^ *1,000 |\|^ *100,000 |" "$folder/out")" = 2 ] || fail "not a line for each rate: $(cat "$folder/out")"
  # With rings too small for the rate, every loss is accounted for.
  "$wait" --seconds 0.05 --rounds 1 --rates 10000000 --pages 1 --json "$folder/json" >"$folder/out" 2>&1 ||
    fail "with losses it ends with $?: $(cat "$folder/out")"
  [ "$(value wait/10000000 "RingSet lost")" -gt 0 ] || fail "no loss: $(cat "$folder/out")"
else
  [ $status -eq 3 ] && grep -q "Not shown: waiting was skipped: " "$folder/out" ||
    fail "it ends with $status: $(cat "$folder/out")"
fi

# Without privileges it says what is missing, and shows the rest.
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if "${as_nobody[@]}" true 2>/dev/null; then
  cp "$wait" "$folder/wait" && chmod 755 "$folder" "$folder/wait"
  "${as_nobody[@]}" "$folder/wait" "${quick[@]}" >"$folder/out" 2>&1
  status=$?
  [ $status -eq 3 ] && grep -q "Not shown: waiting was skipped: " "$folder/out" && grep -q "idle rings" "$folder/out" ||
    fail "without privileges it ends with $status: $(cat "$folder/out")"
fi

refused() { # TEXT OPTION...
  local text=$1
  shift
  "$wait" "$@" >"$folder/out" 2>&1
  local status=$?
  [ $status -eq 2 ] && grep -qe "$text" "$folder/out" || fail "$*: $status: $(cat "$folder/out")"
}
refused "'0' is not accepted" --rates 0
refused "'3' is not accepted" --pages 3
refused "'0' is not accepted" --latency 0
refused "/dev/full' cannot be written: No space left" --json /dev/full --rates 1000 --seconds 0.01 --rounds 1

finish "every rate has its figures, and idle rings theirs"
