#!/usr/bin/env bash
# The column "property" of FAULTS.md and the tests of proptests agree: each test that it names plants
# the fault of its row, and each fault that a test plants has a row that names one. (AnyScriptTest
# takes its faults from the catalogue itself.)
# usage: properties_test.sh FAULTS TEST.cc...
set -u
. lib/perfring/testing/test.sh

table=$1
shift

# "fault Suite.Name" for each planted one in the bodies of tests, under the name that it has in the
# catalogue.
planted=$(awk '
  match($0, /^TEST\([A-Za-z0-9_]+, *[A-Za-z0-9_]+\) \{/) {
    test = substr($0, 6, index($0, ")") - 6)
    sub(/, */, ".", test)
  }
  /^}/ { test = "" }
  test != "" {
    line = $0
    while (match(line, /faults::[A-Za-z0-9]+<|(NoFirstDrain|ClearsAfterDrain|DrainsOneRing)>|ManyFault::[A-Za-z0-9]+[),]/)) {
      name = substr(line, RSTART, RLENGTH - 1)
      sub(/^(faults|ManyFault)::/, "", name)
      line = substr(line, RSTART + RLENGTH)
      snake = tolower(substr(name, 1, 1))
      for (i = 2; i <= length(name); i++) {
        c = substr(name, i, 1)
        snake = snake (c ~ /[A-Z]/ ? "_" : "") tolower(c)
      }
      print snake " " test
    }
  }' "$@" | sort -u)
named=$(awk -F ' *[|] *' '
  /^[|] fault / { at = 0; for (i = 5; i < NF; i++) { if ($i == "property") at = i } }
  /^[|]/ && at && $at ~ /[.]/ { print $2 " " $at }' "$table" | sort -u)

[ "$(wc -l <<<"$named")" -ge 40 ] || fail "FAULTS.md names only these tests: $named"
any="AnyScriptTest.FindsTheFault"
grep -q "^TEST_P(${any/./, }) {" "$@" || fail "proptests has no $any"
wrong=$(grep " AnyScriptTest" <<<"$named" | awk -v any="$any" '$2 != any "/" $1')
[ -z "$wrong" ] || fail "FAULTS.md names another fault's test: $wrong"
absent=$(comm -23 <(grep -v " AnyScriptTest" <<<"$named") <(echo "$planted"))
[ -z "$absent" ] || fail "no test of proptests plants what FAULTS.md says: $absent"
unnamed=$(comm -13 <(cut -d ' ' -f 1 <<<"$named" | sort -u) <(cut -d ' ' -f 1 <<<"$planted" | sort -u))
[ -z "$unnamed" ] || fail "proptests plants these, and FAULTS.md does not say so: $unnamed"

finish "$(wc -l <<<"$named") faults are found by the properties that FAULTS.md names"
