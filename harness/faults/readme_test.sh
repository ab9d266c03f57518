#!/usr/bin/env bash
# The root README has the summary of FAULTS.md.
# usage: readme_test.sh README FAULTS
set -u
. lib/perfring/testing/test.sh

# How many faults each harness finds. Variants are not counted: they are no faults.
summary() { # FAULTS
  awk -F ' *[|] *' '
    /^[|] fault / { last = NF - 1; for (i = 5; i <= last; i++) title[i] = $i; next }
    /^[|]-/ || !/^[|]/ || $3 == "variant" { next }
    {
      if (!($3 in total)) kinds[++n] = $3
      if (!($2 in known)) { known[$2]; total[$3]++ }
      for (i = 5; i <= last; i++) {
        if (!(title[i] in place)) { place[title[i]]; harnesses[++m] = title[i] }
        # The property is in both tables.
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

summary=$(summary "$2")
[ "$(wc -l <<<"$summary")" -gt 6 ] || fail "the summary of FAULTS.md is: $summary"
has_table "$1" "$summary" "the summary of FAULTS.md"

finish "README.md has the summary of FAULTS.md"
