#!/usr/bin/env bash
# ci/fuzz with programs in place of libFuzzer's: what they are given, what is made of what they find,
# and how it ends.
set -u
case "$*" in
  "") ;;
  -h | --help) echo "usage: ci/fuzz_test.sh, in the workspace's folder"; exit 0 ;;
  *) echo "ci/fuzz_test.sh: unknown argument '$*'; usage: ci/fuzz_test.sh" >&2; exit 2 ;;
esac
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{ci,bin,bazel-bin/fuzz,fuzz}
cp -L ci/fuzz "$folder/ci"
cd "$folder" || exit 1
export PATH=$folder/bin:$PATH FOLDER=$folder
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

printf '#!/bin/sh\necho "$@" >>"$FOLDER/builds"\nexit "${BUILD:-0}"\n' >bin/bazel
# Finds something if there is a file PROGRAM.finds, and reaches something new.
cat >bin/libfuzzer <<'PROGRAM'
#!/bin/bash
name=${PWD##*/}
echo "$@" >>"$FOLDER/$name.calls"
for argument; do
  case $argument in
    -exact_artifact_path=*) echo small >"${argument#*=}"; exit 0 ;;
    -artifact_prefix=*) prefix=${argument#*=} ;;
    -set_cover_merge=1) merged=1 ;;
    -*) ;;
    *) files+=("$argument") ;;
  esac
done
if [ -n "${merged:-}" ]; then
  cp "${files[1]}"/new "${files[0]}"
elif [ -n "${prefix:-}" ]; then
  ls "${files[0]}" >"$FOLDER/$name.inputs"
  echo "#99 NEW    cov: 12 ft: 34 corp: 5/67b lim: 8 exec/s: 9 rss: 10Mb" >&2
  echo new >"${files[0]}/new"
  trap 'exit 72' INT
  [ ! -e "$FOLDER/$name.lasts" ] || { sleep 60 >/dev/null 2>&1 & wait; }
  [ ! -e "$FOLDER/$name.breaks" ] || exit 1
  [ -e "$FOLDER/$name.finds" ] || exit 0
  echo long >"${prefix}crash-1234"
  exit 77
else
  echo "fuzz: violated: once" >&2
  exit 77
fi
PROGRAM
chmod +x bin/*
for target in canary hostile_ring kernel_script; do
  cp bin/libfuzzer "bazel-bin/fuzz/${target}_bin"
  mkdir "fuzz/${target}_seeds"
  echo seed >"fuzz/${target}_seeds/a_seed"
  printf '[libfuzzer]\nmax_len = 77\ndict = ring.dict\n' >"fuzz/$target.options"
done
mkdir fuzz/hostile_ring_{corpus,regressions}
echo old >fuzz/hostile_ring_corpus/old
echo crash >fuzz/hostile_ring_regressions/crash-1

run() { # STATUS [OPTION...]
  local status=$1
  shift
  rm -f ./*.calls
  ci/fuzz "$@" >said 2>&1
  local ended=$?
  [ $ended -eq "$status" ] || fail "ci/fuzz $* ended with $ended: $(cat said)"
}
says() { grep -qE -- "$1" said || fail "not said: $1: $(cat said)"; }
given() { grep -qE -- "$2" "$1.calls" || fail "$1 is not given $2: $(cat "$1.calls")"; }
crash=fuzz/hostile_ring_regressions/crash-$(echo small | sha1sum | cut -c1-12)
new=fuzz/hostile_ring_corpus/$(echo new | sha1sum | cut -c1-12)

# Nothing is found: the corpus is merged.
run 0 hostile_ring --seconds 3 --no-merge --jobs 1
[ -e fuzz/hostile_ring_corpus/old ] && [ ! -e "$new" ] || fail "--no-merge has merged"
run 0 hostile_ring --seconds 3 --jobs 1
grep -qx 'build --config=fuzz //fuzz:hostile_ring_bin' builds || fail "built is $(cat builds)"
given hostile_ring "-max_len=77 -dict=$folder/fuzz/ring.dict -max_total_time=3 "
[ "$(tr '\n' ' ' <hostile_ring.inputs)" = "corpus-old regressions-crash-1 seeds-a_seed " ] ||
  fail "the corpus is $(cat hostile_ring.inputs)"
says '^target +executions +seconds'
says '^hostile_ring +99 .* 12 +34 +5 \(67b\) +nothing$'
[ "$(ls fuzz/hostile_ring_corpus)" = "${new##*/}" ] || fail "merged is $(ls fuzz/hostile_ring_corpus)"

# Something is: minimised, kept, and told how to be seen again.
touch hostile_ring.finds
run 1 hostile_ring kernel_script
says '^hostile_ring: fuzz: violated: once$'
says "replay: bazel run --config=fuzz //fuzz:hostile_ring_run -- $crash$"
says '^hostile_ring .* 1$'
says '^kernel_script .* nothing$'
[ "$(cat "$crash")" = small ] || fail "what is kept is not what was minimised"
given hostile_ring '-minimize_crash=1'
rm hostile_ring.finds

# It ended badly and left nothing: that is found, too.
touch kernel_script.breaks
run 1 kernel_script
rm kernel_script.breaks

# The canary is the other way round, and nothing of it is kept. As CI's job, nothing is merged.
rm "$new"
run 1
says '^canary .* NOT its bug$'
touch canary.finds
rm -f "$new"
PERFRING_COUNTS=$folder run 0 --jobs 4
says '^canary .* its bug$'
[ "$(cat fuzz.json)" = '{"passed": 3, "failed": 0, "skipped": 0}' ] || fail "$(cat fuzz.json)"
[ ! -e "$new" ] && [ ! -e fuzz/canary_regressions ] || fail "the job has left something behind"

# Ctrl-C: what there is so far.
touch hostile_ring.lasts
rm -f hostile_ring.calls
ci/fuzz hostile_ring --jobs 1 >said 2>&1 &
while [ ! -s hostile_ring.calls ]; do sleep 0.1; done
kill -TERM $!
wait $! || fail "ended by a signal: $(cat said)"
says '^Stopped early'
says '^hostile_ring +99 '

BUILD=1 run 2 hostile_ring
[ $failures -eq 0 ] && echo "ci/fuzz does as it is told"
exit $((failures != 0))
