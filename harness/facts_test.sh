#!/usr/bin/env bash
# Every fact that is cited (K12, R12, T12, W12, P12, D12, Q12) stands in its file of facts, and once.
# usage: facts_test.sh FILE..., the files that cite facts
set -u
. lib/perfring/testing/test.sh

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
  grep -qx "$fact" "$folder/stated" || fail "no fact $fact, cited in $(grep -lw "$fact" "$@" | xargs)"
done < <(sed -E 's/^- \*\*[KRTWPDQ][0-9]+[a-z]?\*\*//' "$@" | grep -aowE '[KRTWPDQ][0-9]+[a-z]?' | sort -u)
[ $facts -ge 50 ] || fail "only $facts facts are cited"

finish "$facts facts are cited, and there"
