#!/usr/bin/env bash
# Every test that UPSTREAM.md and DIVERGENCES.md cite as evidence exists, in lib or in harness/live.
# usage: claims_test.sh, in the workspace's folder
set -u
. lib/perfring/testing/test.sh

# Suite.Name, Suite.* and some_test.
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

finish "$tests tests are there"
