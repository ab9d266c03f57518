#!/usr/bin/env bash
# The tests of lib that have a stand-in for the kernel, as on a machine whose pages have 64 KiB:
# code that takes a page for 4 KiB maps the wrong ring.
# usage: page_size_test.sh PROGRAM...
set -u
. lib/perfring/testing/test.sh

for program in "$@"; do
  PERFRING_PAGE_SIZE=65536 ${PERFRING_RUN_UNDER-} "$program" >"$folder/said" 2>&1 || {
    tail -n 60 "$folder/said"
    fail "${program##*/} on pages of 64 KiB"
  }
  grep -q '  PASSED  ' "$folder/said" || fail "${program##*/} ran no test"
done
finish "$# programs do the same on pages of 64 KiB"
