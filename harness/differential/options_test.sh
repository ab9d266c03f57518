#!/usr/bin/env bash
# Options that are wrong are named, and nothing runs: exit code 2, as for a script that is wrong.
set -uo pipefail

binary=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

expect() { # WANTED_CODE WANTED_TEXT OPTION...
  local code=$1 text=$2 output
  shift 2
  output=$("$binary" "$@" 2>&1)
  local actual=$?
  if [ "$actual" -ne "$code" ] || [[ $output != *"$text"* ]]; then
    echo "options '$*': exit code $actual, not $code with '$text':"
    echo "$output"
    status=1
  fi
}

expect 0 "Exit codes" --help
expect 2 "--scripts" --scripts -1
expect 2 "--scripts" --scripts many
expect 2 "--seed" --seed -1
expect 2 "--seed" --seed 18446744073709551616
expect 2 "--steps" --steps 0
expect 2 "--cpu" --cpu -1
expect 2 "--script" --script "$folder/none"
expect 2 "--nonsense" --nonsense

# These come after the question whether there is a live kernel, and then the answer is 2, too.
printf 'output 1\npages 3\n' >"$folder/wrong"
if "$binary" --scripts 0 >"$folder/output" 2>&1; then
  expect 2 "wrong: line 2: a ring of 3 pages" --script "$folder/wrong"
  printf '# such as\nword 32\noutput 1\n' >"$folder/other"
  expect 2 "$folder/other: line 2: this live kernel has 64 bits" --script "$folder/other"
  printf 'start 8\noutput 1\n' >"$folder/started"
  expect 2 "started: line 1: this live kernel has 64 bits" --script "$folder/started"
  printf 'output 1\n> at 1 output 1\n' >"$folder/nested"
  expect 2 "nested: line 2: a nested step" --script "$folder/nested"
  expect 2 "cpu" --cpu 4095 --scripts 1
  printf 'output 1\n' >"$folder/right"
  expect 0 "1 scripts, 1 steps" --script "$folder/right"
  expect 0 '"equal": true' --script "$folder/right" --json
  "$binary" --script "$folder/right" >/dev/full 2>"$folder/output"
  if [ $? -ne 2 ] || ! grep -q 'cannot be written' "$folder/output"; then
    echo "nothing is said of a verdict that cannot be written:"
    cat "$folder/output"
    status=1
  fi
else
  expect 2 "the live kernel cannot be used" --script "$folder/wrong"
fi
exit $status
