#!/usr/bin/env bash
# Checks that every BPF program declares to the kernel the license that LICENSE states.
# usage: license_test.sh FILE: a file of the checkout, which is read (links are followed)
set -u
. lib/perfring/testing/test.sh
cd "$(dirname "$(readlink -f "$1")")" || exit 1

mapfile -t programs < <(find harness -name '*.bpf.c')
stated=$(sed -n 's/^The BPF programs .* declare themselves \("[^"]*"\) to the kernel.*/\1/p' LICENSE)
[ -n "$stated" ] || fail "LICENSE states nothing"
for program in "${programs[@]}"; do
  declared=$(sed -n 's/.*SEC("license") = \("[^"]*"\);.*/\1/p' "$program")
  [ "$declared" = "$stated" ] || fail "$program declares ${declared:-nothing}, not $stated"
done

[ ${#programs[@]} -ge 6 ] || fail "only ${#programs[@]} programs"
finish "${#programs[@]} programs declare $stated"
