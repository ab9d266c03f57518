#!/usr/bin/env bash
# Runs a campaign of random injections, as this user and, if that is root, as an ordinary user too.
# Or runs a campaign on a planted fault, which it must find.
# usage: campaign_test.sh sample SECONDS | planted FLOW, in the workspace's folder
set -u
. lib/perfring/testing/test.sh

grep -q -e __asan_init -e __tsan_init -e __ubsan_handle harness/cli/perfring && {
  echo "skipped: a sanitizer's own calls and allocations would be made to fail"
  exit 0
}

# Without namespaces nothing is shown, and the campaign has said so.
campaign() { # ARGUMENT...
  harness/anomaly/campaign "$@"
  local code=$?
  [ $code -eq 3 ] && [ -z "${PERFRING_REQUIRE_LIVE:-}" ] && {
    echo "skipped"
    return
  }
  [ $code -eq 0 ] || fail "campaign $*: exit code $code"
}

as_nobody() {
  setpriv --reuid 65534 --regid 65534 --clear-groups "$@" 2>/dev/null
}

case $1 in
  sample)
    # The same injections each time, so that a difference is due to a change; README.md has the long
    # form.
    campaign --sample "$2" --seed 2
    as_nobody true && campaign --sample $(($2 / 3)) --seed 2 --user nobody
    ;;
  planted) campaign --planted --flows "$2" ;;
esac
finish "$*: as it is to be"
