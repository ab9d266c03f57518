#!/usr/bin/env bash
# Tests that FAULTS.md agrees with the tables and tests around it. docs/evidence.md has its summary.
# Each test in its column "property" plants the fault of its row, and each fault that a test of
# proptests plants has a row that names a test. (AnyScriptTest takes its faults from the catalogue
# itself.)
# usage: tables_test.sh SUMMARY FAULTS FILE...: the files of proptests
set -u
. lib/perfring/testing/test.sh

evidence=$1
table=$2
shift 2
mapfile -t tests < <(printf '%s\n' "$@" | grep '_test[.]cc$')

# Prints how many faults each harness finds. Variants are not faults, and are not counted.
summary() { # FAULTS
  awk -F ' *[|] *' '
    /^[|] fault / { last = NF - 1; for (i = 5; i <= last; i++) title[i] = $i; next }
    /^[|]-/ || !/^[|]/ || $3 == "variant" { next }
    {
      if (!($3 in total)) kinds[++n] = $3
      if (!($2 in known)) { known[$2]; total[$3]++ }
      for (i = 5; i <= last; i++) {
        if (!(title[i] in place)) { place[title[i]]; harnesses[++m] = title[i] }
        # The last two columns are in both tables.
        if ($i != "" && $i !~ /^[(]/ && !counted[title[i], $2]++) found[title[i], $3]++
      }
    }
    END {
      line = "| found by |"
      rule = "|---|"
      for (k = 1; k <= n; k++) {
        line = line " of " total[kinds[k]] " faults of a " kinds[k] " |"
        rule = rule "---|"
      }
      print line "\n" rule
      for (h = 1; h <= m; h++) {
        line = "| " harnesses[h] " |"
        for (k = 1; k <= n; k++) line = line " " found[harnesses[h], kinds[k]] + 0 " |"
        print line
      }
    }' "$1"
}

summary=$(summary "$table")
[ "$(wc -l <<<"$summary")" -gt 6 ] || fail "the summary of FAULTS.md is: $summary"
has_table "$evidence" "$summary" "the summary of FAULTS.md"

# Prints "fault Suite.Name" for each fault that the body of a test plants, under its name in the
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
        digits = c ~ /[0-9]/ && substr(name, i - 1, 1) !~ /[0-9]/
        snake = snake (c ~ /[A-Z]/ || digits ? "_" : "") tolower(c)
      }
      print snake " " test
    }
  }' "${tests[@]}" | sort -u)
named=$(awk -F ' *[|] *' '
  /^[|] fault / { at = 0; for (i = 5; i < NF; i++) { if ($i == "property") at = i } }
  /^[|]/ && at && $at ~ /[.]/ { print $2 " " $at }' "$table" | sort -u)

[ "$(wc -l <<<"$named")" -ge 40 ] || fail "FAULTS.md names only these tests: $named"
any="AnyScriptTest.FindsTheFault"
grep -q "^TEST_P(${any/./, }) {" "${tests[@]}" || fail "proptests has no $any"
wrong=$(grep " AnyScriptTest" <<<"$named" | awk -v any="$any" '$2 != any "/" $1')
[ -z "$wrong" ] || fail "FAULTS.md names another fault's test: $wrong"
absent=$(comm -23 <(grep -v " AnyScriptTest" <<<"$named") <(echo "$planted"))
[ -z "$absent" ] || fail "no test of proptests plants what FAULTS.md says: $absent"
unnamed=$(comm -13 <(cut -d ' ' -f 1 <<<"$named" | sort -u) <(cut -d ' ' -f 1 <<<"$planted" | sort -u))
[ -z "$unnamed" ] || fail "proptests plants these, and FAULTS.md does not say so: $unnamed"

finish "docs/evidence.md has the summary, and $(wc -l <<<"$named") faults are found by the properties named"
