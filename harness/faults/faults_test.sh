#!/usr/bin/env bash
# Each fault is found as the catalogue says in one harness, and FAULTS.md has that column of the
# table.
# usage: faults_test.sh PERFRING FAULTS HARNESS [runs]   (runs: it is not to be left out)
set -u
. lib/perfring/testing/test.sh

# The first three columns, and the one with this title, of the tables in stdin.
column() { # TITLE
  awk -F ' *[|] *' -v title="$1" '
    /^[|] fault / { at = 0; for (i = 5; i < NF; i++) { if ($i == title) at = i } }
    /^[|]/ && at { print $2 " | " $3 " | " $4 " | " $at }
    !/^[|]/ { at = 0 }'
}

table=$(${PERFRING_RUN_UNDER-} "$1" faults --markdown --harness "$3")
code=$?
# Only the other table has this reason.
not_run=$(${PERFRING_RUN_UNDER-} "$1" faults no_smp_wmb --harness "$3" | grep "^not run, ")
[ "$code" != 3 ] || [ "${4-}" = runs ] || [ -z "$not_run" ] || finish "$not_run"
[ "$code" = 0 ] || fail "perfring faults --harness $3 ended with $code: $(grep -E "MISSED|FOUND" <<<"$table")"
title=$(head -n 1 <<<"$table" | awk -F ' *[|] *' '{ print $5 }')
rows=$(column "$title" <<<"$table" | wc -l)
[ "$rows" -gt 50 ] || fail "a table of $rows rows was printed: $table"
expected=$(column "$title" <"$2")
if [ -n "$not_run" ]; then # nor are others like it: the rows that were printed are compared
  expected=$(awk -F ' [|] ' 'NR == FNR { printed[$1]; next } $1 in printed' \
    <(column "$title" <<<"$table") - <<<"$expected")
fi
difference=$(diff <(cat <<<"$expected") <(column "$title" <<<"$table")) ||
  fail "FAULTS.md differs from 'perfring faults --markdown', column '$title': $difference"
[ -z "$not_run" ] || finish "FAULTS.md has the $rows rows that the program prints here; $not_run"
for other in fuzz conform property; do # in each table
  difference=$(diff <(column $other <"$2" | sort -u) <(column $other <<<"$table" | sort -u)) ||
    fail "FAULTS.md differs from 'perfring faults --markdown', column '$other': $difference"
done
reasons=$(grep '^- (' <<<"$table" | grep -v -x -F -f "$2") &&
  fail "FAULTS.md has not these reasons: $reasons"

finish "FAULTS.md has the column '$title' that the program prints"
