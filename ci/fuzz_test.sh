#!/usr/bin/env bash
# Tests ci/fuzz with a script in place of the libFuzzer programs: which options it passes to them,
# what it does with their findings, and how it ends.
set -u
case "$*" in
  "") ;;
  -h | --help)
    echo "usage: ci/fuzz_test.sh, in the workspace's folder"
    exit 0
    ;;
  *)
    echo "ci/fuzz_test.sh: unknown argument '$*'; usage: ci/fuzz_test.sh" >&2
    exit 2
    ;;
esac
. lib/perfring/testing/test.sh
mkdir -p "$folder"/{ci,bin,bazel-bin/fuzz,fuzz}
cp -L ci/fuzz ci/fuzz_target.py ci/cases.py "$folder/ci"
cd "$folder" || exit 1
export PATH=$folder/bin:$PATH FOLDER=$folder XDG_CACHE_HOME=$folder/cache
kept=$folder/cache/perfring/fuzz

printf '#!/bin/sh\necho "$@" >>"$FOLDER/builds"\nexit "${BUILD:-0}"\n' >bin/bazel
# Reaches new code, and finds something if the file PROGRAM.finds exists.
cat >bin/libfuzzer <<'PROGRAM'
#!/bin/bash
trap 'exit 72' INT # set before the test can see that it has begun
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
  [ ! -e "$FOLDER/$name.lasts" ] || { touch "$FOLDER/$name.sleeps"; sleep 60 >/dev/null 2>&1 & wait; }
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
for target in hostile_ring kernel_script planted_fault parsers/litmus parsers/trace; do
  mkdir -p fuzz/parsers "bazel-bin/fuzz/${target}_seeds"
  cp bin/libfuzzer "bazel-bin/fuzz/${target}_bin"
  echo seed >"bazel-bin/fuzz/${target}_seeds/a_seed"
  [[ $target == parsers/* ]] || printf '[%s]\nmax_len = 77\ndict = ring.dict\n' "$target" >>fuzz/options.ini
done
printf '[parsers]\nmax_len = 77\ndict = ring.dict\n[parsers/litmus]\n[parsers/trace]\nmax_len = 78\n' >>fuzz/options.ini
real=$OLDPWD/fuzz/options.ini
mkdir fuzz/hostile_ring_regressions
echo old >old
python3 -m zipfile -c fuzz/hostile_ring_corpus.zip old
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
crash=hostile_ring_regressions/crash-$(echo small | sha1sum | cut -c1-12)
archive=fuzz/hostile_ring_corpus.zip
archived() { python3 -m zipfile -l $archive | tail -n +2 | cut -d ' ' -f 1; }

tree() { find fuzz -type f -exec sha1sum {} + | sort; }
unchanged() { # AFTER
  [ "$(tree)" = "$before" ] || fail "$1 has changed fuzz/: $(diff <(echo "$before") <(tree))"
}
before=$(tree)

# Nothing is found: the checkout does not change. New inputs are kept, used by the next campaign,
# and merged with --merge.
run 0 hostile_ring --seconds 3 --jobs 1
unchanged "a campaign that finds nothing"
grep -qx 'build .*--config=fuzz fuzz/hostile_ring_bin fuzz/hostile_ring_seeds' builds || fail "built is $(cat builds)"
given hostile_ring "-max_len=77 -dict=$folder/fuzz/ring.dict -max_total_time=3 "
[ "$(tr '\n' ' ' <hostile_ring.inputs)" = "corpus-old regressions-crash-1 seeds-a_seed " ] ||
  fail "the corpus is $(cat hostile_ring.inputs)"
says '^target +executions +seconds'
says '^hostile_ring +99 .* 12 +34 +5 \(67b\) +nothing$'
says "1 of hostile_ring, in $kept$"
[ "$(tail -n 1 said)" = "To merge them into fuzz/*_corpus.zip: ci/fuzz --merge" ] || fail "$(cat said)"
[ "$(ls "$kept/hostile_ring_corpus")" = new ] || fail "kept is $(ls -R "$kept")"
run 0 hostile_ring --seconds 3 --merge --jobs 1
grep -qx kept-new hostile_ring.inputs || fail "what is kept is not taken up: $(cat hostile_ring.inputs)"
[ "$(archived)" = "$(echo new | sha1sum | cut -c1-12)" ] || fail "merged is $(archived)"
[ ! -e "$kept/hostile_ring_corpus" ] || fail "what is merged is still kept"
before=$(tree)
# The same inputs give the same archive at any time and with any permissions.
(umask 077 && TZ=Asia/Tokyo run 0 hostile_ring --merge --jobs 1)
unchanged "a merge that changes no input"

# The targets of a folder share the time of one target.
run 0 parsers --seconds 6 --jobs 1
given litmus "-dict=$folder/fuzz/parsers/ring.dict -max_total_time=3 "
given litmus "-max_len=77 "
given trace "-max_len=78 -dict=$folder/fuzz/parsers/ring.dict -max_total_time=3 "
# Weights divide the time of two targets, and in a folder the time of one. They are not passed to
# libFuzzer.
cp fuzz/options.ini without_weights
sed -i 's/^\[hostile_ring\]$/&\nweight = 9/; s/^\[parsers\]$/&\nweight = 2/; s/^\[parsers\/trace\]$/&\nweight = 6/' fuzz/options.ini
run 0 hostile_ring kernel_script --seconds 50 --jobs 1
given hostile_ring ' -max_total_time=90 '
given kernel_script ' -max_total_time=10 '
options="import pathlib, sys; sys.path.insert(0, 'ci'); import fuzz_target
print(fuzz_target.options_of(pathlib.Path('hostile_ring')))"
[ "$(python3 -Bc "$options")" = "{'max_len': '77', 'dict': 'ring.dict'}" ] || fail "$(python3 -Bc "$options")"
run 0 parsers --seconds 40 --jobs 1
given trace ' -max_total_time=30 '
given litmus ' -max_total_time=10 '
run 0 kernel_script parsers --seconds 9 --jobs 1
given kernel_script ' -max_total_time=2 '
given trace ' -max_total_time=12 '
given litmus ' -max_total_time=4 '
run 0 hostile_ring hostile_ring --seconds 3 --jobs 1
given hostile_ring ' -max_total_time=3 '
mv without_weights fuzz/options.ini
# Input from strangers gets most of the time: hostile_ring, the decoder of records, and the parsers
# of files that a user receives.
python3 - "$real" <<'WEIGHTS' || fail "the weights of $real"
import configparser, sys
options = configparser.ConfigParser()
options.read(sys.argv[1])
folder = options["parsers"]["weight"]
weights = {name: int(options[name].get("weight", folder)) for name in options.sections() if name != "parsers"}
hostile = {"hostile_ring", "record", "parsers/perf_data", "parsers/elf"}
others = {weight for name, weight in weights.items() if name not in hostile}
assert hostile < set(weights) and min(weights[name] for name in hostile) > max(others), weights
assert 2 * sum(weights[name] for name in hostile) > sum(weights.values()), weights
WEIGHTS
# A target without a corpus gets a corpus only if it is named.
run 0 parsers --merge --jobs 1
unchanged "a merge of targets without a corpus"
[ "$(ls "$kept/litmus_corpus")" = new ] || fail "what is not merged is not kept"
run 0 litmus --seconds 6 --merge --jobs 1
given litmus -max_total_time=6
[ ! -e trace.calls ] || fail "a target that was not named is run"
[ -e fuzz/parsers/litmus_corpus.zip ] || fail "the corpus of a target in a folder is not there"
rm fuzz/parsers/litmus_corpus.zip

# An input that is longer than max_len, which libFuzzer would cut off, is an error.
head -c 78 /dev/zero >bazel-bin/fuzz/kernel_script_seeds/long
run 1 kernel_script
says '^ci/fuzz: kernel_script: seeds-long is longer than 77 bytes'
rm bazel-bin/fuzz/kernel_script_seeds/long
before=$(tree)

# A finding is minimized and kept, and the command that replays it is printed.
touch hostile_ring.finds
run 1 hostile_ring kernel_script
unchanged "a campaign that finds something"
says '^hostile_ring: fuzz: violated: once$'
says "replay: bazel run --config=fuzz //fuzz:hostile_ring_run -- $kept/$crash$"
says "as a regression test: .* cp $kept/$crash fuzz/hostile_ring_regressions/$"
says '^hostile_ring .* 1$'
says '^kernel_script .* nothing$'
[ "$(cat "$kept/$crash")" = small ] || fail "what is kept is not what was minimised"
given hostile_ring '-minimize_crash=1'
grep -q "in base64: $(echo small | base64)" ci-results/fuzz/fuzz.xml || fail "$(cat ci-results/fuzz/fuzz.xml)"
run 1 hostile_ring --merge
says "replay: bazel run --config=fuzz //fuzz:hostile_ring_run -- fuzz/$crash$"
[ "$(cat "fuzz/$crash")" = small ] || fail "with --merge it is not kept in the checkout"
rm hostile_ring.finds
before=$(tree)

# A program that ends badly without leaving an input is a finding, too.
touch kernel_script.breaks
run 1 kernel_script
rm kernel_script.breaks

# The target with a planted fault fails if it finds nothing, and none of its inputs are kept.
run 1
says '^planted_fault .* NOT its fault$'
touch planted_fault.finds
run 0 --jobs 4
says '^planted_fault .* its fault$'
[ "$(grep -o '<testcase' ci-results/fuzz/fuzz.xml | wc -l)" = 5 ] || fail "$(cat ci-results/fuzz/fuzz.xml)"
! grep -q '<failure' ci-results/fuzz/fuzz.xml || fail "$(cat ci-results/fuzz/fuzz.xml)"
unchanged "the campaign of all targets"
[ ! -e "$kept/planted_fault_corpus" ] || fail "inputs of planted_fault are kept"

# Ctrl-C reports the results so far.
touch hostile_ring.lasts
rm -f hostile_ring.calls
ci/fuzz hostile_ring --jobs 1 >said 2>&1 &
wait_until [ -e hostile_ring.sleeps ]
kill -TERM $!
wait $! || fail "ended by a signal: $(cat said)"
says '^Stopped early'
says '^hostile_ring +99 '
rm hostile_ring.lasts

# If new inputs cannot be kept, this is reported before anything is built.
rm builds
XDG_CACHE_HOME=/proc/none run 2 hostile_ring
says '^ci/fuzz: /proc/none/perfring/fuzz: .*; set XDG_CACHE_HOME'
[ ! -e builds ] || fail "it has built"
BUILD=1 run 2 hostile_ring
finish "ci/fuzz gives libFuzzer what it is told, and reports what it finds"
