#!/usr/bin/env bash
# The root README has the summary of FAULTS.md.
# usage: readme_test.sh README FAULTS
set -u
. lib/perfring/testing/test.sh
summary=$(bash harness/faults/summary.sh "$2")
[ "$(wc -l <<<"$summary")" -gt 6 ] || fail "the summary of FAULTS.md is: $summary"
has_table "$1" "$summary" harness/faults/summary.sh

finish "README.md has the summary of FAULTS.md"
