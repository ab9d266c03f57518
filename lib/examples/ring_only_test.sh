#!/usr/bin/env bash
# The example that needs no kernel.
# usage: ring_only_test.sh PROGRAM, in the workspace's folder
set -u
. lib/perfring/testing/test.sh
said=$("$1") || fail "it ends with $?"
[ "$said" = hello ] || fail "it says: $said"
finish "ring_only says hello"
