#!/usr/bin/env bash
# A target's test fails for one bad input among many, and names it; that one can be run alone. The
# target is the canary, the input one that meets its planted bug.
# usage: run_test.sh, in the workspace's folder
set -u
failures=0
fail() { echo "FAILED: $*: $said"; failures=$((failures + 1)); }
run() { said=$(fuzz/run.sh //fuzz:canary_run fuzz/canary_bin fuzz/ring.dict "$@" 2>&1); }
planted="violated: a Sample, but not to the reference"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m zipfile -c "$folder/sound.zip" fuzz/hostile_ring_seeds/{empty,three_samples}
python3 -m zipfile -c "$folder/planted.zip" fuzz/hostile_ring_seeds/{empty,raw_size_2_31,three_samples}
run fuzz/hostile_ring_seeds/breaks_once "$folder/sound.zip" -- --replay || fail "sound inputs"
for name in breaks_once empty three_samples; do
  [[ $said == *"Running: ./$name"* ]] || fail "$name is not replayed"
done
run fuzz/hostile_ring_seeds/breaks_once "$folder/planted.zip" -- --replay && fail "the planted bug"
[[ $said == *"$planted"* ]] || fail "the planted bug is not named"
[[ $said == *"Replay: bazel run //fuzz:canary_run -- raw_size_2_31" ]] || fail "the input is not named"
run "$folder/planted.zip" -- raw_size_2_31 && fail "the input alone"
[[ $said == *"$planted"* ]] || fail "the input alone is not what is run"
run "$folder/planted.zip" -- three_samples || fail "another input alone"
[[ $said != *raw_size_2_31* ]] || fail "another input is not alone"
run fuzz/hostile_ring_seeds/empty "$folder/sound.zip" -- --replay && fail "two of one name"
[[ $said == *"two inputs have the same name" ]] || fail "two of one name are not told apart"
exit $((failures != 0))
