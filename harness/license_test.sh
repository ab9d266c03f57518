#!/usr/bin/env bash
# Checks that every BPF program declares to the kernel the license that LICENSE states.
# usage: license_test.sh LICENSE PROGRAM...
set -u
. lib/perfring/testing/test.sh
license=$1
shift

stated=$(sed -n 's/^The BPF programs .* declare themselves \("[^"]*"\) to the kernel.*/\1/p' "$license")
[ -n "$stated" ] || fail "LICENSE states nothing"
for program in "$@"; do
  declared=$(sed -n 's/.*SEC("license") = \("[^"]*"\);.*/\1/p' "$program")
  [ "$declared" = "$stated" ] || fail "$program declares ${declared:-nothing}, not $stated"
done

finish "$# programs declare $stated"
