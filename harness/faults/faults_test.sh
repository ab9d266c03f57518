#!/usr/bin/env bash
# Tests that a harness finds each fault as the catalogue says, and that FAULTS.md has its column.
# usage: faults_test.sh PERFRING FAULTS HARNESS [runs]   (runs: it is not to be left out)
set -u
. lib/perfring/testing/test.sh

# Prints the first three columns, and the column with this title, of the tables in stdin.
column() { # TITLE
  awk -F ' *[|] *' -v title="$1" '
    /^[|] fault / { at = 0; for (i = 5; i < NF; i++) { if ($i == title) at = i } }
    /^[|]/ && at { print $2 " | " $3 " | " $4 " | " $at }
    !/^[|]/ { at = 0 }'
}

# ThreadSanitizer's hook must not call an instrumented function: see faults_command.cc.
if [ "$3" = tsan ] && [ "${4-}" = runs ]; then
  calls=$(objdump --disassemble=__tsan_on_report "$1" | grep -E '\b(call|blr?)\b')
  [ -n "$calls" ] || fail "objdump shows no call in __tsan_on_report"
  other=$(grep -v '<syscall[@>]' <<<"$calls") && fail "__tsan_on_report calls more than syscall(2): $other"
fi

table=$(${PERFRING_RUN_UNDER-} "$1" faults --markdown --harness "$3")
code=$?
# Prints the reason if a fault is not run in this build. Only the table without --markdown has it.
not_run() { ${PERFRING_RUN_UNDER-} "$1" faults no_smp_wmb --harness "$2" | grep "^not run, "; }
if [ "$code" = 3 ] && [ "${4-}" != runs ]; then
  why=$(not_run "$1" "$3") && finish "$why"
fi
[ "$code" = 0 ] || fail "perfring faults --harness $3 ended with $code: $(grep -E "MISSED|FOUND" <<<"$table")"
title=$(head -n 1 <<<"$table" | awk -F ' *[|] *' '{ print $5 }')
printed=$(column "$title" <<<"$table")
rows=$(wc -l <<<"$printed")
expected=$(column "$title" <"$2")
least=50
why=
if [ "$rows" -lt "$(wc -l <<<"$expected")" ] && why=$(not_run "$1" "$3"); then # the rows that were run
  expected=$(awk -F ' [|] ' 'NR == FNR { run[$1]; next } $1 in run' <(cat <<<"$printed") - <<<"$expected")
  least=20
fi
[ "$rows" -gt $least ] || fail "a table of $rows rows was printed: $table"
difference=$(diff <(cat <<<"$expected") <(cat <<<"$printed")) ||
  fail "FAULTS.md differs from 'perfring faults --markdown', column '$title': $difference"
[ -z "$why" ] || finish "FAULTS.md has the $rows rows that the program prints here; $why"
for other in fuzz conform property; do # columns that every table has
  difference=$(diff <(column $other <"$2" | sort -u) <(column $other <<<"$table" | sort -u)) ||
    fail "FAULTS.md differs from 'perfring faults --markdown', column '$other': $difference"
done
reasons=$(grep '^- (' <<<"$table" | grep -v -x -F -f "$2") &&
  fail "FAULTS.md has not these reasons: $reasons"

finish "FAULTS.md has the column '$title' that the program prints"
