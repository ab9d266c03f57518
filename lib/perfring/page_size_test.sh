#!/usr/bin/env bash
# Runs the tests of lib that use the kernel's stand-in as on a machine with pages of 64 KiB: code
# that assumes pages of 4 KiB maps the wrong ring.
# usage: page_size_test.sh PROGRAM...
set -u
. lib/perfring/testing/test.sh
unset XML_OUTPUT_FILE # the last program would write its cases there, as though they were this test's

for program in "$@"; do
  PERFRING_PAGE_SIZE=65536 ${PERFRING_RUN_UNDER-} "$program" >"$folder/output" 2>&1 || {
    tail -n 60 "$folder/output"
    fail "${program##*/} on pages of 64 KiB"
  }
  grep -q '  PASSED  ' "$folder/output" || fail "${program##*/} ran no test"
done
finish "$# programs do the same on pages of 64 KiB"
