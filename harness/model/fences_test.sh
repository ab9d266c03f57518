#!/usr/bin/env bash
# FENCES.md has the table that the checker prints.
# usage: fences_test.sh PERFRING FENCES
set -u
. lib/perfring/testing/test.sh
table=$(${PERFRING_RUN_UNDER-} "$1" check --fences) || fail "perfring check --fences ended with $?"
# As many lines of the file as the table has, from the table's first line on.
first=$(head -n 1 <<<"$table")
found=$(grep -F -x -A "$(($(wc -l <<<"$table") - 1))" -- "$first" "$2")
[ "$table" = "$found" ] ||
  fail "FENCES.md differs from 'perfring check --fences': $(diff <(echo "$found") <(echo "$table"))"

finish "FENCES.md has the table that the checker prints"
