#!/usr/bin/env bash
# Every BPF program declares to the kernel what LICENSE says that it does.
# usage: license_test.sh LICENSE PROGRAM...
set -u
license=$1
shift
failures=0

stated=$(sed -n 's/^The BPF programs .* declare themselves \("[^"]*"\) to the kernel.*/\1/p' "$license")
[ -n "$stated" ] || { echo "FAILED: LICENSE states nothing"; exit 1; }
for program in "$@"; do
  declared=$(sed -n 's/.*SEC("license") = \("[^"]*"\);.*/\1/p' "$program")
  [ "$declared" = "$stated" ] && continue
  echo "FAILED: $program declares ${declared:-nothing}, not $stated"
  failures=$((failures + 1))
done

[ $failures -eq 0 ] && echo "$# programs declare $stated"
exit $((failures != 0))
