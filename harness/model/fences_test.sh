#!/usr/bin/env bash
# FENCES.md has the table that the checker prints.
# usage: fences_test.sh PERFRING FENCES
set -u
. lib/perfring/testing/test.sh
table=$(${PERFRING_RUN_UNDER-} "$1" check --fences) || fail "perfring check --fences ended with $?"
has_table "$2" "$table" "'perfring check --fences'"

finish "FENCES.md has the table that the checker prints"
