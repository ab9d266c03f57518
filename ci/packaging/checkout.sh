# shellcheck shell=bash
# Sourced by the tests of packaging, in the workspace's folder. Adds to lib/perfring/testing/test.sh
# functions that skip a test and that check the output of CMake and other programs.
set -u
. lib/perfring/testing/test.sh

# Skips the test, in Bazel's report as well.
skip() { # WHY
  echo "skipped: $1"
  [ -z "${XML_OUTPUT_FILE:-}" ] || cat >"$XML_OUTPUT_FILE" <<XML
<testsuites><testsuite name="${TEST_BINARY##*/}" tests="1"><testcase classname="${TEST_BINARY##*/}"
name="all"><skipped message="$1"/></testcase></testsuite></testsuites>
XML
  exit 0
}
need() { # PROGRAM...
  local program
  for program; do
    command -v "$program" >/dev/null || skip "$program is not installed: run ci/setup package"
  done
}

# Remove the variables that Bazel adds, because a user does not have them.
unset MAKEFLAGS CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH
export HOME=$folder CMAKE_BUILD_PARALLEL_LEVEL=2

# succeeds COMMAND...: ends the test if the command fails, because the rest depends on it.
succeeds() {
  "$@" >"$folder/output" 2>&1 && return
  echo "FAILED: $* ended with $?:"
  tail -n 40 "$folder/output"
  exit 1
}
# check_output STATUS REGEX COMMAND...: checks the exit code (0, or 1 for any other), and that the
# output matches.
check_output() {
  local status=$1 regex=$2 ended=0
  shift 2
  "$@" >"$folder/output" 2>&1 || ended=1
  # Join the lines, because CMake breaks long ones.
  [ $ended -eq "$status" ] && tr -s ' \n' '  ' <"$folder/output" | grep -qE -- "$regex" && return
  fail "$*: ended with $ended in place of $status, or its output does not match /$regex/: $(tail -n 20 "$folder/output")"
}
# shellcheck disable=SC2034 # the tests that source this file use it
version=$(sed -nE 's/^#define PERFRING_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' lib/perfring/version.h | paste -sd .)
