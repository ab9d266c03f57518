#!/usr/bin/env bash
# Checks that citations exist:
# - the tests that UPSTREAM.md and DIVERGENCES.md name as evidence are in lib or in harness/live
# - the items that UPSTREAM.md names as ours are in lib's headers
# - the cited facts (K12, R12, T12, W12, P12, D12, Q12) are stated, each once in its file of facts
# - the facts in KERNEL_FACTS.md's table of kernels have tests that ci/run kernel_facts finds
# usage: citations_test.sh FILE: a file of the checkout, which is read (links are followed)
set -u
. lib/perfring/testing/test.sh
cd "$(dirname "$(readlink -f "$1")")" || exit 1
mapfile -t citing < <(find fuzz harness lib proptests -name '*.cc' -o -name '*.h' -o -name '*.md')

# The tables name tests as Suite.Name, Suite.* or some_test.
tests=0
for file in lib/UPSTREAM.md lib/DIVERGENCES.md; do
  column=$(grep -m 1 '^|.*test' "$file" | awk -F'|' '{ print NF - 1 }')
  while IFS= read -r name; do
    tests=$((tests + 1))
    case $name in
      *_test)
        find lib harness -name "$name.cc" -o -name "$name.sh" | grep -q . || fail "$file: no $name"
        ;;
      *.\*)
        grep -RqE "TEST(_[FP])?\(${name%.*}," lib --include='*_test.cc' || fail "$file: no test $name"
        ;;
      *)
        tr -d '\n ' < <(find lib/perfring -name '*_test.cc' -exec cat {} +) |
          grep -qE "TEST(_[FP])?\(${name%.*},${name#*.}\)" || fail "$file: no test $name"
        ;;
    esac
  done < <(grep '^|' "$file" | tail -n +3 | awk -F'|' -v column="$column" '{ print $column }' |
    grep -oE '[a-z_]+_test\b|\b[A-Z][A-Za-z0-9]*\.([A-Z][A-Za-z0-9_]+|\*)')
done
[ $tests -ge 40 ] || fail "only $tests tests were found in the tables"

# The column "ours": `perf_buffer.h`, `PerfBuffer::open`, `os::parse_cpu_list`, `Lost`. A member must
# be in a header that declares its class or namespace, outside comments.
items=0
while IFS= read -r item; do
  items=$((items + 1))
  item=${item%%"("*}
  item=${item%%"<"*}
  case $item in
    *_test) ;; # counterparts of aya's own tests
    *.h) [ -e "lib/perfring/$item" ] || fail "UPSTREAM.md: no header $item" ;;
    *)
      declares='^'
      [ "$item" = "${item##*::}" ] || declares="(class|struct|namespace)\b.*\b${item%%::*}\b"
      grep -RlE --include='*.h' "$declares" lib/perfring | xargs -r grep -hv '^ *//' |
        grep -w -- "${item##*::}" >/dev/null || fail "UPSTREAM.md: no header declares $item"
      ;;
  esac
done < <(grep '^|' lib/UPSTREAM.md | awk -F'|' '{ print $3 }' | grep -oE '`[^`]+`' | tr -d '`')
[ $items -ge 40 ] || fail "only $items of our items were found in UPSTREAM.md"

sed -nE 's/^- \*\*(K[0-9]+)\*\* .*/\1/p' harness/KERNEL_FACTS.md >"$folder/stated"
sed -nE 's/^- \*\*([RT][0-9]+)\*\* .*/\1/p' harness/RECORD_FACTS.md >>"$folder/stated"
sed -nE 's/^- \*\*(W[0-9]+[a-z]?)\*\* .*/\1/p' harness/RINGS_FACTS.md >>"$folder/stated"
sed -nE 's/^- \*\*([PDQ][0-9]+)\*\* .*/\1/p' harness/CONFORMANCE_FACTS.md >>"$folder/stated"
while IFS= read -r fact; do
  fail "$fact is stated twice"
done < <(sort "$folder/stated" | uniq -d)

facts=0
while IFS= read -r fact; do
  facts=$((facts + 1))
  grep -qx "$fact" "$folder/stated" || fail "no fact $fact, cited in $(grep -lw "$fact" "${citing[@]}" | xargs)"
done < <(sed -E 's/^- \*\*[KRTWPDQ][0-9]+[a-z]?\*\*//' "${citing[@]}" | grep -aowE '[KRTWPDQ][0-9]+[a-z]?' | sort -u)
[ $facts -ge 50 ] || fail "only $facts facts are cited"

facts_with_tests="from jobs import kernel_facts; print(*kernel_facts.tests_of_facts(), sep='\n')"
PYTHONPATH=ci python3 -B -c "$facts_with_tests" >"$folder/shown" || fail "ci/jobs finds no tests"
rows=0
while IFS= read -r fact; do
  rows=$((rows + 1))
  grep -qx "$fact" "$folder/shown" || fail "no live test shows $fact, which KERNEL_FACTS.md's table has"
done < <(sed -nE '/<!-- ci.run kernel_facts: -->/,$s/^\| ([KRW][0-9]+[a-z]?) .*/\1/p' harness/KERNEL_FACTS.md)
[ $rows -ge 50 ] || fail "only $rows facts are in KERNEL_FACTS.md's table"

finish "$tests tests, $items items and $facts facts are cited, and there"
