#!/usr/bin/env bash
# test.sh itself: a failure fails the test, wherever it happens. Does not use test.sh for its
# verdict.
# usage: test_test.sh, in the workspace's folder
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong=0

ends() { # STATUS SCRIPT: runs a test with this script, which must end so and leave nothing behind
  local output
  output=$(TMPDIR=$folder bash -uc ". lib/perfring/testing/test.sh; $2" 2>&1)
  local ended=$?
  [ $ended -eq "$1" ] && [ -z "$(ls "$folder")" ] && return
  echo "FAILED: $2 ended with $ended and left '$(ls "$folder")': $output"
  wrong=1
}
ends 0 'finish holds'
ends 1 'fail here; finish holds'
ends 1 '(fail in a subshell); finish holds'
ends 1 'cd "$folder"; fail in the background & wait; finish holds'
ends 1 'echo "$(fail in a substitution)"; finish holds'
table='printf "a\nb\nc\n" >"$folder/file"; has_table "$folder/file"'
ends 0 "$table \$'b\nc' x; finish holds"
ends 1 "$table \$'b\nd' x; finish holds"
ends 1 "$table \$'a\nc' x; finish holds"
ends 1 "$table \$'c\nd' x; finish holds"
ends 1 "$table '' x; finish holds"
ends 0 'wait_until true; finish holds'
ends 0 '(sleep 0.3; touch "$folder/there") & wait_until [ -e "$folder/there" ]; finish holds'
ends 1 'sleep() { :; }; wait_until false; finish holds'
exit $wrong
