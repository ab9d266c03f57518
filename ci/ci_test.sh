#!/usr/bin/env bash
# The scripts of CI, without what they run: their arguments, and how .ci/run ends.
# usage: ci_test.sh, in the workspace's folder
set -u
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -RL .ci ci "$folder"
cd "$folder" || exit 1

expect() { # STATUS REGEX COMMAND...: its exit code, and what its last line says
  local status=$1 regex=$2 said
  shift 2
  said=$("$@" 2>&1)
  local ended=$?
  [ $ended -eq "$status" ] || { echo "FAILED: $* ended with $ended: $said"; failures=$((failures + 1)); }
  tail -n 1 <<<"$said" | grep -qE "$regex" ||
    { echo "FAILED: $*: the last line is not /$regex/: $said"; failures=$((failures + 1)); }
}

# Jobs that would leave a trace, and a set-up that does nothing.
printf '#!/bin/sh\necho setup >>started\n' >ci/setup
for job in format default asan-ubsan tsan fuzz foreign cross fleet; do
  cp "ci/$job" "ci/$job.real"
  printf '#!/bin/sh\necho %s >>started\n[ -z "$PERFRING_COUNTS" ] || echo %s >$PERFRING_COUNTS/%s.json\n' \
    "$job" "'{\"passed\": 2, \"failed\": 0, \"skipped\": 1}'" "$job" >"ci/$job"
done
expect 0 'usage: .ci/run ' .ci/run --help
expect 2 "unknown argument 'x'" .ci/run x
[ ! -e started ] || { echo "FAILED: .ci/run started $(tr '\n' ' ' <started)"; failures=$((failures + 1)); }
expect 0 '^14 passed, 0 failed, 7 skipped$' .ci/run
printf '#!/bin/sh\n[ -z "$1" ]\n' >ci/setup  # but not --cross
expect 0 '^10 passed, 0 failed, 7 skipped$' .ci/run
sed 's/^late=.*/late=0/' .ci/run >.ci/slow && chmod +x .ci/slow
expect 0 '^8 passed, 0 failed, 7 skipped$' .ci/slow
printf '#!/bin/sh\nexit 3\n' >ci/tsan
expect 1 '^8 passed, 1 failed, 6 skipped$' .ci/run
printf '#!/bin/sh\nexit 3\n' >ci/setup
expect 1 '^0 passed, 1 failed, 0 skipped$' .ci/run

for job in default asan-ubsan tsan; do
  mv "ci/$job.real" "ci/$job"
  expect 0 "usage: ci/$job \[BAZEL FLAG" "ci/$job" --help
done

for job in fuzz foreign cross; do mv "ci/$job.real" "ci/$job"; done
mkdir -p fuzz/canary_seeds fuzz/hostile_ring_seeds
expect 0 'so does the CI job' ci/fuzz --help
expect 2 "no target 'hostile'; there are canary, hostile_ring" ci/fuzz hostile
expect 2 "'-1' is not accepted|expected one argument" ci/fuzz --seconds -1
expect 2 "'1e3' is not accepted: give a whole number" ci/fuzz --seconds 1e3
expect 2 "'0' is not accepted" ci/fuzz --jobs 0
expect 2 'unrecognized arguments: --second' ci/fuzz --secondsx 1
expect 2 'unrecognized arguments: x' ci/coverage x
mv ci/fleet.real ci/fleet
expect 0 'usage: ci/fleet' ci/fleet --help
expect 2 "unknown argument 'x'" ci/fleet x

# With nothing installed but Python: what is missing is named, and what installs it.
mkdir bin
ln -s /usr/bin/python3 bin
expect 0 'for bazel build; repeatable' ci/foreign --help
expect 2 "no guest 'mips'; there are: all, amd64, arm64, armhf, i386, s390x, i386-on" ci/foreign mips
expect 2 "'0' is not accepted: give a whole number" ci/foreign armhf --limit 0
expect 2 'qemu-system-arm is not installed: run ci/setup --cross' env PATH="$PWD/bin" ci/foreign armhf
expect 0 'for bazel test; repeatable' ci/cross --help
expect 2 "no 'mips'; there are arm64, armhf, i386, s390x" ci/cross mips
expect 2 'bazel is not installed: run ci/setup' env PATH="$PWD/bin" ci/cross

# A test outside the sandbox whose result Bazel would keep.
configured() { # TAGS
  echo '{"id": {"targetConfigured": {"label": "//a:a_test"}}, "configured": {"tag": ['"$1"']}}' >events
}
configured '"no-sandbox"'
expect 1 '^job: 0 passed, 1 failed' ci/count_tests job 0 events
grep -q '//a:a_test.*tagged external' <<<"$(ci/count_tests job 0 events)" ||
  { echo "FAILED: the test without a tag is not named"; failures=$((failures + 1)); }
configured '"external", "no-sandbox"'
if grep -q '//a:a_test' <<<"$(ci/count_tests job 0 events)"; then
  echo "FAILED: a test that has its tag is named"
  failures=$((failures + 1))
fi

# A test's results that are no XML, as if a failing test had printed what XML has not.
result() { # CONTENTS
  printf '%b' "$1" >test.xml
  echo '{"id": {"testResult": {"label": "//a:a_test"}}, "testResult": {"status": "PASSED",' \
    '"testActionOutput": [{"name": "test.xml", "uri": "file://'"$PWD"'/test.xml"}]}}' >events
}
result '<testsuites><testcase name="a" classname="A"/></testsuites>'
expect 0 '^job: 1 passed, 0 failed' ci/count_tests job 0 events
result '<testsuites><testcase name="a" classname="\x01"/></testsuites>'
expect 1 '^job: 0 passed, 1 failed' ci/count_tests job 0 events

[ $failures -eq 0 ] && echo "CI's scripts do as they are told"
exit $((failures != 0))
