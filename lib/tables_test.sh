#!/usr/bin/env bash
# What UPSTREAM.md and DIVERGENCES.md name is there: our items in the sources, tests in the tests.
# usage: tables_test.sh, in the workspace's folder
set -u
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# The `...` of each row's column, one a line.
quoted() { # FILE COLUMN
  grep '^|' "$1" | tail -n +3 | awk -F'|' -v column="$2" '{ print $column }' | grep -o '`[^`]*`' | tr -d '`'
}

# Our items: A::b is there if a class (or namespace, or enum) A and a b are.
items=0
while IFS= read -r item; do
  [[ $item =~ ^[A-Za-z_]+(::[~A-Za-z_]+)+$ ]] || continue
  items=$((items + 1))
  owner=${item%::*}
  grep -RqE "(class|struct|enum class|namespace) ([a-z:]+::)?${owner##*::}\b" lib/perfring --include='*.h' ||
    fail "UPSTREAM.md: no ${owner##*::} as in $item"
  grep -RqE "[^A-Za-z_~]${item##*::}\b" lib/perfring --include='*.h' || fail "UPSTREAM.md: no $item"
done < <(quoted lib/UPSTREAM.md 3)
[ $items -ge 15 ] || fail "only $items items were found in UPSTREAM.md"

# Tests: Suite.Name, Suite.* and some_test.
tests=0
for file in lib/UPSTREAM.md lib/DIVERGENCES.md; do
  column=$(grep -m 1 '^|.*test' "$file" | awk -F'|' '{ print NF - 1 }')
  while IFS= read -r name; do
    tests=$((tests + 1))
    case $name in
      *_test)
        find lib harness -name "$name.cc" -o -name "$name.sh" | grep -q . || fail "$file: no $name" ;;
      *.\*)
        grep -RqE "TEST(_[FP])?\(${name%.*}," lib --include='*_test.cc' || fail "$file: no test $name" ;;
      *)
        tr -d '\n ' < <(cat lib/perfring/*_test.cc lib/perfring/*/*_test.cc) |
          grep -qE "TEST(_[FP])?\(${name%.*},${name#*.}\)" || fail "$file: no test $name" ;;
    esac
  done < <(grep '^|' "$file" | tail -n +3 | awk -F'|' -v column="$column" '{ print $column }' |
    grep -oE '[a-z_]+_test\b|\b[A-Z][A-Za-z0-9]*\.([A-Z][A-Za-z0-9_]+|\*)')
done
[ $tests -ge 40 ] || fail "only $tests tests were found in the tables"

[ $failures -eq 0 ] && echo "$items items and $tests tests are there"
exit $((failures != 0))
