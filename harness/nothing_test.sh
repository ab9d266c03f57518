#!/usr/bin/env bash
# Checks that each patch of ci/nothing.toml applies to the sources, and that each test case in its
# list exists. Then tests the command itself, with stand-ins for git, Bazel and the tests.
# usage: nothing_test.sh FILE: a file of the checkout, which is read (links are followed)
set -u
. lib/perfring/testing/test.sh
cd "$(dirname "$(readlink -f "$1")")" || exit 1

checked=$(ci/run nothing --check 2>&1) || fail "$checked"

mkdir -p "$folder"/{ci,bin,unit}
cp -RL ci/run ci/jobs "$folder/ci"
cd "$folder" || exit 1
export PATH=$folder/bin:$PATH FOLDER=$folder
unset CI
cat >bin/git <<'PROGRAM'
#!/bin/sh
printf '%s\0' ci/nothing.toml unit/unit.cc unit/unit_test.cc
PROGRAM
# "Builds" unit_test from the current unit.cc: the test reads the source that was built.
cat >bin/bazel <<'PROGRAM'
#!/bin/bash
case $2 in
  build)
    [ ! -e "$FOLDER/breaks" ] || exit 1
    mkdir -p bazel-bin/unit/unit_test.runfiles/perfring
    cp unit/unit.cc bazel-bin/unit/built
    cp "$FOLDER/bin/unit_test" bazel-bin/unit
    ;;
  query) echo '  env = {"UNIT": "$(rootpath :unit.cc)"},' ;;
esac
PROGRAM
cat >bin/unit_test <<'PROGRAM'
#!/bin/bash
built=$(dirname "$0")/built
[ "$UNIT" = unit/unit.cc ] || exit 1
case $1 in
  --gtest_list_tests)
    printf 'UnitTest.\n  Counts\n  Loops\n  Else\n  DISABLED_Off\nAll/UnitTest.\n  Each/0  # 4\n  Each/1  # 5\n'
    printf 'UnitTest/0.  # int\n  Typed\nUnitTest/1.  # long\n  Typed\n'
    exit
    ;;
esac
name=${1#*=}
ends() { [ -z "${PERFRING_NOTHING_ENDS:-}" ] || exit 132; }
grep -qx 'return 0;' "$built" && grep -q PERFRING_NOTHING_ENDS "$built" || exit 1
case $name in
  *.Counts | *.Each/1) ends; exit 1 ;;
  *.Else) ;;
  *.Skips) echo "[  SKIPPED ] 1 test"; exit 0 ;;
  *.Sleeps) ends; while :; do :; done ;;
  *) ends ;;
esac
echo "[  PASSED  ] 1 test."
PROGRAM
chmod +x bin/*
printf 'int unit() {\n  return 7;\n}\n' >unit/unit.cc
printf 'TEST(UnitTest, %s) {}\n' Counts Loops Else >unit/unit_test.cc
printf 'TEST_P(UnitTest, Each) {}\nTYPED_TEST(UnitTest, Typed) {}\n' >>unit/unit_test.cc

catalogue() { # GREEN [AFTER]: writes the catalogue; GREEN: the listed cases
  printf '[unit]\nedits = [{ file = "unit/unit.cc", after = "%s", nothing = "return 0;" }]\n' "${2:-int unit() {}"
  printf 'tests = ["//unit:unit_test"]\n[unit.green]\n"It says why." = [%s]\n' "$1"
} >ci/nothing.toml
expect() { # STATUS REGEX ARGUMENT...: checks the exit code and output of ci/run nothing
  local status=$1 regex=$2 output
  shift 2
  output=$(ci/run nothing "$@" 2>&1)
  local ended=$?
  [ $ended -eq "$status" ] || fail "ci/run nothing $* ended with $ended: $output"
  grep -qE "$regex" <<<"$output" || fail "ci/run nothing $*: not /$regex/: $output"
}

all='"UnitTest.Loops", "UnitTest.Typed", "All/UnitTest.Each/0"'
catalogue "$all"
expect 0 '^unit: 2 cases fail, 4 pass all the same, 1 never come to it, 0 are skipped$'
expect 0 '^1 units, 0 differences from ci/nothing.toml$' unit
expect 0 '^1 units' --check
[ "$(cat unit/unit.cc)" = $'int unit() {\n  return 7;\n}' ] || fail "the checkout's own file is patched"

catalogue '"UnitTest.Typed", "All/UnitTest.Each/0"'
expect 1 '^unit: UnitTest.Loops passes though nothing is done'
expect 1 '^1 units, 1 differences'
catalogue "$all, \"UnitTest.Counts\""
expect 1 '^unit: UnitTest.Counts is listed in ci/nothing.toml, and no longer passes'
catalogue "$all, \"UnitTest.Else\""
expect 1 '^unit: UnitTest.Else is listed'
catalogue "$all, \"UnitTest.Typed\""
expect 2 'UnitTest.Typed is listed twice'
catalogue "$all, \"UnitTest.Gone\""
expect 1 'there is no test UnitTest.Gone in unit$' --check

catalogue "$all"
sed -i 's/^tests = .*/&\nsuites = ["UnitTest"]/' ci/nothing.toml
expect 0 '^1 units, 0 differences' --check
sed -i 's/^suites = .*/suites = ["OtherTest"]/' ci/nothing.toml
expect 1 'there is no test OtherTest in unit$' --check

for gone in "int other() {" "n"; do
  catalogue "$all" "$gone"
  expect 1 'unit: the patch does not apply: unit/unit.cc has this [03] times, and not once' --check
  expect 2 'unit: the patch does not apply'
done
catalogue "$all"
touch breaks
expect 2 'unit: the replacement that does nothing does not compile'
rm breaks

# A listed case may be skipped; a case that takes too long counts as failed.
sed -i 's/Loops/Skips/' bin/unit_test
expect 1 'UnitTest.Loops is listed'
sed -i '/printf/s/Else/Sleeps/' bin/unit_test
sed -i 's/UnitTest.Loops/UnitTest.Skips/' ci/nothing.toml
expect 0 '^unit: 3 cases fail, 3 pass all the same, 0 never come to it, 1 are skipped$' --limit 1

finish "$checked"
