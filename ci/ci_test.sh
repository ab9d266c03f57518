#!/usr/bin/env bash
# Tests the scripts of CI without running their programs: their arguments, and how .ci/run ends.
set -u
case "$*" in
  "") ;;
  -h | --help)
    echo "usage: ci/ci_test.sh, in the workspace's folder"
    exit 0
    ;;
  *)
    echo "ci/ci_test.sh: unknown argument '$*'; usage: ci/ci_test.sh" >&2
    exit 2
    ;;
esac
. lib/perfring/testing/test.sh
cp -RL .ci ci fuzzed_files "$folder"
cd "$folder" || exit 1
mkdir fuzz
printf "[%s]\nmax_len = 77\n" hostile_ring planted_fault >fuzz/options.ini # the targets of ci/fuzz
unset PERFRING_RESULTS

expect() { # STATUS REGEX COMMAND...: checks the exit code and the last line; $said has the output
  local status=$1 regex=$2
  shift 2
  said=$("$@" 2>&1)
  local ended=$?
  [ $ended -eq "$status" ] || fail "$* ended with $ended: $said"
  tail -n 1 <<<"$said" | grep -qE "$regex" || fail "$*: the last line is not /$regex/: $said"
}

# --help changes nothing, and a wrong argument is refused before the script does anything: each
# program that a script could use leaves a trace. Each script of ci/ is in the table.
mkdir bin
for program in apt-cache apt-get bazel clang-format-19 clang++-19 cpio cp dpkg dpkg-deb dpkg-query g++ \
  git make mkdir mktemp mv qemu-system-arm rm sudo tar touch; do
  printf '#!/bin/sh\necho "%s $*" >>"%s/started"\n' $program "$folder" >bin/$program
done
chmod +x bin/*
nothing_was_done() { # AFTER
  [ ! -e started ] || fail "$1 has started: $(tr '\n' ';' <started)"
  rm -f started
}
refuses() { # STATUS STREAM COMMAND...: prints its usage on STREAM only, and does nothing
  local status=$1 stream=$2 other
  shift 2
  other=$([ "$stream" = out ] && echo err || echo out)
  PATH="$folder/bin:$PATH" "$@" >out 2>err </dev/null
  local ended=$?
  [ $ended -eq "$status" ] || fail "$* ended with $ended: $(cat out err)"
  grep -qi "usage:" "$stream" || fail "$* does not say how it is used: $(cat out err)"
  [ ! -s "$other" ] || fail "$* also says: $(cat "$other")"
  nothing_was_done "$*"
}
while read -r script wrong; do
  # shellcheck disable=SC2086  # several arguments
  refuses 2 err "$script" $wrong
  echo "$script" >>told
done <<'TABLE'
.ci/run format x
.ci/run formats
.ci/run --x
ci/asan-ubsan --all EXTRA
ci/asan-ubsan EXTRA
ci/bench --runs 2
ci/bench x
ci/ci_test.sh x
ci/compile_commands x
ci/conform x
ci/conform --subject NAME
ci/conform --peer nobody
ci/conform --peer
ci/conform --update --peer libbpf
ci/configs --x
ci/configs strictest
ci/count_tests
ci/count_tests --sum
ci/count_tests --case job name gone
ci/count_tests default 0
ci/coverage x
ci/cross mips
ci/deb --x
ci/deb a b
ci/default EXTRA
ci/default --config opt
ci/distro
ci/distro potato
ci/docs x
ci/fleet --fix
ci/foreign mips
ci/foreign_packages --cross
ci/foreign_packages x
ci/format --fix x
ci/format x
ci/fuzz hostile
ci/fuzz --secondsx 1
ci/fuzz_test.sh x
ci/hooks/commit-msg
ci/hooks/pre-commit x
ci/includes --x
ci/kernel_facts --kernel
ci/kernel_facts nobody
ci/nothing --check NAME
ci/nothing --limit x
ci/nothing nobody
ci/oss-fuzz/build.sh x
ci/package x
ci/setup --cross
ci/setup cross x
ci/setup x
ci/states Paris
ci/states --target
ci/test_job
ci/test_job default EXTRA
ci/test_job EXTRA! --config=opt
ci/test_job name -- lib
ci/tsan EXTRA
ci/tsan -- //lib/...
TABLE
for script in .ci/run $(find ci -type f -perm /111 -not -path 'ci/bazel/*'); do
  grep -qx "$script" told || fail "$script is not in the table"
  refuses 0 out "$script" --help
  refuses 0 out "$script" -h
done
rm -r bin

# ci/bench skips a ratio that a busy machine leaves open, and fails a slow drain.
python3 -B - <<'PYTHON' || fail "ci/bench judges wrongly"
import importlib.machinery, importlib.util, sys
sys.path.insert(0, "ci")
loader = importlib.machinery.SourceFileLoader("bench", "ci/bench")
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
loader.exec_module(bench)
rows = [
    ("at most", [1.0, 1.1, 1.0], "passed", True),
    ("at most", [4.0, 1.0, 1.1, 1.0], "passed", True),
    ("at most", [2.1, 2.0, 2.1], "failed", False),  # twice as slow, whatever the machine does
    ("at most", [2.1, 3.0, 2.5, 4.0, 2.1, 2.9, 3.3, 2.2], "failed", False),
    ("at most", [1.6, 2.1, 3.0, 1.5, 2.5, 1.7, 2.1, 3.0], "passed", False),
    ("at most", [1.6, 2.1, 3.0, 2.5, 2.6, 2.1, 3.0, 1.9], "skipped", False),
    ("at most", [2.5, 1.0, 2.1, 2.1, 2.1], "skipped", False),  # settled, and yet once well within
    ("at least", [1.9, 1.8, 1.9], "passed", True),
    ("at least", [1.0, 0.9, 1.0], "failed", False),
    ("at least", [1.0, 0.9, 1.9, 1.0], "skipped", False),
]
for how, values, outcome, certain in rows:
    got = bench.verdict(how, 1.75, values)[0], bench.is_certain(how, 1.75, values)
    assert got == (outcome, certain), (how, values, got)
PYTHON

# The form of a commit message.
message() { # STATUS REGEX MESSAGE
  printf '%s\n' "$3" >message
  expect "$1" "$2" ci/hooks/commit-msg message
}
why=$'\n\nA longer wait would hide it.'
message 0 '' "ring: refuse a header of 0 bytes$why"
message 0 '' "lib, fuzz: drop the second copy$why"
message 0 '' "ring: $(printf 'x%.0s' {1..59})$why"
message 1 'it has 66 characters: at most 65' "ring: $(printf 'x%.0s' {1..60})$why"
message 1 "begin with an area" "Refuse a header of 0 bytes$why"
message 1 "begin with an imperative .*, not 'Fixing'" "ring: Fixing a header of 0 bytes$why"
message 1 'end without a full stop' "ring: refuse a header of 0 bytes.$why"
message 1 'leave the second line empty' $'ring: refuse it\nfor good\n\nWhy.'
message 1 'say why, in a body' $'ring: refuse it\n\n# Please enter the commit message'
message 1 'say why, in a body' $'ring: refuse it\n# ------------------------ >8 ------------------------\n\ndiff'
message 0 '' "Merge branch 'x'"
rm message

# A missing target is found before other targets are built. A flag that Bazel refuses is not counted
# as a failed test.
mkdir bin
printf '#!/bin/sh\n[ "$1" = test ] && echo "$@" >>started\n[ "$1" = test ]\n' >bin/bazel
chmod +x bin/bazel
expect 2 '' env PATH="$PWD/bin:$PATH" ci/test_job name -- //no/such:target
nothing_was_done "ci/test_job name -- //no/such:target"
# Bazel writes its events even if it refuses a flag.
cat >bin/bazel <<'BAZEL'
#!/bin/sh
for argument; do case $argument in --build_event_json_file=*) echo '{}' >"${argument#*=}" ;; esac; done
echo "ERROR: Unrecognized option: $*"
exit 2
BAZEL
chmod +x bin/bazel
expect 2 'Unrecognized option: .* --secure' env PATH="$PWD/bin:$PATH" ci/default --secure
[ ! -e ci-results/default ] || fail "a flag that Bazel does not know was counted"
rm -r bin

# .ci/run, with jobs that leave a trace and three test cases, and a setup that does nothing.
for test in a b; do ci/count_tests --case three $test passed; done
ci/count_tests --case three c skipped "not here"
mv ci-results/three .
printf '#!/bin/sh\necho setup >>started\n' >ci/setup
for job in format docs package default asan-ubsan tsan bench fuzz foreign cross fleet; do
  mv "ci/$job" "ci/$job.real"
  cat >"ci/$job" <<JOB
#!/bin/sh
echo $job >>started
cp -R three "\$PERFRING_RESULTS/$job"
JOB
  chmod +x "ci/$job"
done
started() { # WHAT: everything started since the last call
  [ "$(tr '\n' ' ' <started)" = "$1 " ] || fail "started were $(tr '\n' ' ' <started), not $1"
  rm -f started
}
expect 0 '^20 passed, 0 failed, 10 skipped$' .ci/run
started "setup setup format setup docs setup default setup tsan setup asan-ubsan setup fuzz setup bench setup package setup foreign setup cross"
expect 0 '^4 passed, 0 failed, 2 skipped$' .ci/run tsan format
started "setup setup tsan setup format"
[ -e ci-results/default/a.xml ] || fail "a job's results are gone after another's"
touch ci-results/fleet/of_another_run.xml 2>/dev/null
expect 0 '^2 passed, 0 failed, 1 skipped$' .ci/run fleet
expect 1 '^0 passed, 1 failed, 0 skipped$' env PERFRING_RESULTS=/proc/none .ci/run format
printf '#!/bin/sh\n[ "$1" != foreign ] && [ "$1" != cross ]\n' >ci/setup
expect 0 '^16 passed, 0 failed, 10 skipped$' .ci/run
[[ $said == *$'\nNOT RUN: foreign cross '* ]] || fail "it is not said that two jobs were not run: $said"
sed 's/^late=.*/late=0/' .ci/run >.ci/slow && chmod +x .ci/slow
expect 0 '^12 passed, 0 failed, 10 skipped$' .ci/slow
[[ $said == *$'\nNOT RUN: fuzz package foreign cross '*': .ci/run fuzz package foreign cross'$'\n'* ]] || fail "nor that four were not: $said"
grep -q 'minutes have passed' ci-results/fuzz/fuzz.xml || fail "a job that was not begun left no result"
printf '#!/bin/sh\nexit 3\n' >ci/tsan
expect 1 '^14 passed, 1 failed, 9 skipped$' .ci/run
grep -q 'exit code 3' ci-results/tsan/job.xml || fail "a job that ended badly left no result"
printf '#!/bin/sh\n' >ci/tsan
expect 1 '^0 passed, 1 failed, 0 skipped$' .ci/run tsan
printf '#!/bin/sh\n[ "$1" != tsan ] || exit 3\n' >ci/setup
expect 1 '^0 passed, 1 failed, 0 skipped$' .ci/run tsan
grep -q 'exit code 3' ci-results/tsan/job.xml || fail "a job whose set-up failed left no result"
printf '#!/bin/sh\nexit 3\n' >ci/setup
expect 1 '^0 passed, 1 failed, 0 skipped$' .ci/run

for job in default asan-ubsan tsan fuzz foreign cross fleet; do mv "ci/$job.real" "ci/$job"; done
expect 2 "'hostile' is not a target; choose from: hostile_ring, planted_fault" ci/fuzz hostile
expect 2 "'-1' is not accepted|expected one argument" ci/fuzz --seconds -1
expect 2 "'1e3' is not accepted: give a whole number" ci/fuzz --seconds 1e3
expect 2 "'0' is not accepted" ci/fuzz --jobs 0

# With only Python installed, a script names the missing program and the command that installs it.
mkdir bin
ln -s /usr/bin/python3 bin
expect 2 "'mips' is not a guest; choose from: all, amd64, arm64, armhf, i386, ppc64el, s390x, i386-on" ci/foreign mips
expect 2 "'0' is not accepted: give a whole number" ci/foreign armhf --limit 0
expect 2 'qemu-system-arm is not installed: run ci/setup cross' env PATH="$PWD/bin" ci/foreign armhf
expect 2 "'mips' is not an architecture; choose from: arm64, armhf, i386, ppc64el, s390x" ci/cross mips
for script in ci/cross ci/configs; do
  expect 2 'bazel is not installed: run ci/setup' env PATH="$PWD/bin" $script
done

# ci/kernel_facts: the facts come from the beginnings of the tests' comments, the columns from the
# reports of the guests, the oldest kernel first. A report that names no guest gets no column.
mkdir -p harness/live ci-results/foreign
cat >harness/live/a_test.cc <<'TESTS'
// K10, W8c: why,
// K3 is not what it shows.
TEST_F(A, B) {}
// K2
TEST(A,
     C) {}
// Without the last of them (K3).
TEST(A, D) {}
TESTS
printf 'before\n<!-- ci/kernel_facts: -->\nold\n<!-- :ci/kernel_facts -->\nafter\n' >harness/KERNEL_FACTS.md
said_of() { # GUEST KERNEL CASE...
  printf '<testsuites guest="%s" kernel="%s">' "$1" "$2"
  printf '<testcase classname="A" %s</testcase>' "${@:3}"
  echo '</testsuites>'
}
said_of new 6.12.1-x 'name="B">' 'name="C"><failure message="x"/>' >ci-results/foreign/new.xml
said_of old 6.1.0-x 'name="B"><skipped message="x"/>' >ci-results/foreign/old.xml
said_of old 6.1.0-x 'name="C">' >ci-results/foreign/old-C.xml
echo '<testsuites><testcase classname="A" name="B"/></testsuites>' >ci-results/foreign/nobody.xml
expect 0 '^ci/kernel_facts: 2 kernels in harness/KERNEL_FACTS.md$' ci/kernel_facts
diff - harness/KERNEL_FACTS.md <<'EXPECTED' || fail "the table of facts (<) is not what was written (>)"
before
<!-- ci/kernel_facts: -->
| fact | old | new |
| --- | --- | --- |
| kernel | 6.1.0-x | 6.12.1-x |
| K2 | yes | no |
| K10 | skipped | yes |
| W8c | skipped | yes |
<!-- :ci/kernel_facts -->
after
EXPECTED
expect 0 '' ci/kernel_facts new
grep -q '^| kernel | 6.12.1-x |$' harness/KERNEL_FACTS.md || fail "the columns are not those asked for"
echo before >harness/KERNEL_FACTS.md
expect 2 'has not both of' ci/kernel_facts

# A test that runs outside the sandbox, but whose result Bazel would cache, is an error.
configured() { # TAGS
  echo '{"id": {"targetConfigured": {"label": "//a:a_test"}}, "configured": {"tag": ['"$1"']}}' >events
}
configured '"no-sandbox"'
expect 1 '^job: 0 passed, 1 failed' ci/count_tests job 0 events
grep -q '//a:a_test.*tagged external' <<<"$(ci/count_tests job 0 events)" ||
  fail "the test without a tag is not named"
configured '"external", "no-sandbox"'
! grep -q '//a:a_test' <<<"$(ci/count_tests job 0 events)" || fail "a test that has its tag is named"

# Each test.xml of this run is kept under the name of its test. A report that is not valid XML (a
# failing test may have printed characters that are not allowed in XML) counts as a failed test
# case.
result() { # FILE CONTENTS [IDENTITY]
  printf '%b' "$2" >"$1"
  echo '{"id": {"testResult": {"label": "//a/b:a_test"'"${3:-}"'}}, "testResult": {"status": "PASSED",' \
    '"testActionOutput": [{"name": "test.xml", "uri": "file://'"$PWD/$1"'"}]}}'
}
one='<testsuites><testcase name="a" classname="A"/></testsuites>'
result one.xml "$one" ', "shard": 1' >events
result two.xml "${one/\/>/><skipped message=\"b\"/></testcase>}" ', "shard": 2' >>events
expect 0 '^job: 1 passed, 0 failed, 1 skipped$' ci/count_tests job 0 events
[ "$(cd ci-results/job && find . -type f | sort | tr '\n' ' ')" = \
  "./a/b/a_test.shard2.xml ./a/b/a_test.xml " ] || fail "kept are $(find ci-results/job)"
expect 0 '^1 passed, 0 failed, 1 skipped$' ci/count_tests --sum job
expect 1 '^job: 1 passed, 1 failed, 1 skipped$' ci/count_tests job 3 events
grep -q 'ended with exit code 3' ci-results/job/bazel.xml || fail "what Bazel itself says is not kept"
result one.xml '<testsuites><testcase name="a" classname="\x01"/></testsuites>' >events
expect 1 '^job: 0 passed, 1 failed' ci/count_tests job 0 events
[ ! -e ci-results/job/a/b/a_test.shard2.xml ] || fail "another run's report is kept"

# Each source that OSS-Fuzz compiles exists, and belongs to a fuzz target in Bazel, too. A missing
# source is named before anything compiles.
while IFS= read -r source; do install -D /dev/null "$source"; done < <(sed -e 's,^//,,' -e 's,:,/,' fuzzed_files)
printf '[%s]\n' hostile_ring kernel_script two_consumers parsers/{elf,live_options} >fuzz/options.ini
expect 0 '[.]cc$' ci/oss-fuzz/build.sh --sources
expect 2 'there is no target parsers/dwarf$' env TARGETS="hostile_ring parsers/dwarf" ci/oss-fuzz/build.sh
rm harness/bench/bench_options.cc
expect 2 'there is no harness/bench/bench_options[.]cc$' ci/oss-fuzz/build.sh

# The workflow for GitHub: short enough to read, with every job and with the folder of their
# results.
python3 - "$(sed -n 's/^jobs=(\(.*\))/\1/p' .ci/run)" <<'PYTHON' || fail "the workflow in ci/github.yml"
import sys, yaml
text = "".join(line for line in open("ci/github.yml", encoding="utf-8") if not line.startswith("#"))
assert len(text.splitlines()) <= 30, len(text.splitlines())
job = yaml.safe_load(text)["jobs"]["test"]
assert job["strategy"]["matrix"]["job"] == [*sys.argv[1].split(), "conform"], sys.argv[1]
assert job["env"] == {"PERFRING_REQUIRE_LIVE": 1}
assert any(step.get("with", {}).get("path") == "ci-results/" for step in job["steps"])
assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/run ${{ matrix.job }}"
PYTHON

finish "the scripts of CI obey their arguments, and .ci/run counts what they did"
