#!/usr/bin/env bash
# The root README has the summary of FAULTS.md.
# usage: readme_test.sh README FAULTS
set -u
. lib/perfring/testing/test.sh
summary=$(bash harness/faults/summary.sh "$2")
[ "$(wc -l <<<"$summary")" -gt 6 ] || fail "the summary of FAULTS.md is: $summary"
first=$(head -n 1 <<<"$summary")
found=$(grep -F -x -A "$(($(wc -l <<<"$summary") - 1))" -- "$first" "$1")
[ "$summary" = "$found" ] ||
  fail "README.md differs from harness/faults/summary.sh: $(diff <(echo "$found") <(echo "$summary"))"

finish "README.md has the summary of FAULTS.md"
