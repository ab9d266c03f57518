#!/usr/bin/env bash
# FENCES.md has the table that the checker prints.
# usage: fences_test.sh PERFRING FENCES
set -u
table=$(${PERFRING_RUN_UNDER-} "$1" check --fences) || { echo "FAILED: perfring check --fences ended with $?"; exit 1; }
# Of the file, from the table's first line on, as many lines.
first=$(head -n 1 <<<"$table")
found=$(grep -F -x -A "$(($(wc -l <<<"$table") - 1))" -- "$first" "$2")
if [ "$table" != "$found" ]; then
  echo "FAILED: FENCES.md's table differs from that of 'perfring check --fences':"
  diff <(echo "$found") <(echo "$table")
  exit 1
fi
echo "FENCES.md has the table that the checker prints"
