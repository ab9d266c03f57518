#!/usr/bin/env bash
# A target's test fails for one bad input among many, and names it; that one can be run alone. The
# target is the one with a planted fault, the input one that meets it.
# usage: run_test.sh, in the workspace's folder
set -u
. lib/perfring/testing/test.sh
run() { said=$(fuzz/run.sh //fuzz:planted_fault_run fuzz/planted_fault_bin fuzz/ring.dict "$@" 2>&1); }
planted="violated: intact: a Sample, but not to the reference"

python3 -m zipfile -c "$folder/sound.zip" fuzz/hostile_ring_seeds/{empty,three_samples}
python3 -m zipfile -c "$folder/planted.zip" fuzz/hostile_ring_seeds/{empty,raw_size_2_31,three_samples}
run fuzz/hostile_ring_seeds/breaks_once "$folder/sound.zip" -- --replay || fail "sound inputs: $said"
for name in breaks_once empty three_samples; do
  [[ $said == *"Running: ./$name"* ]] || fail "$name is not replayed: $said"
done
run fuzz/hostile_ring_seeds/breaks_once "$folder/planted.zip" -- --replay && fail "the planted bug: $said"
[[ $said == *"$planted"* ]] || fail "the planted bug is not named: $said"
[[ $said == *"Replay: bazel run //fuzz:planted_fault_run -- raw_size_2_31" ]] || fail "the input is not named: $said"
run fuzz/hostile_ring_seeds -- --replay && fail "the planted bug, in a folder: $said"
[[ $said == *"Replay: bazel run //fuzz:planted_fault_run -- raw_size_2_31" ]] || fail "the input in a folder is not named: $said"
run "$folder/planted.zip" -- raw_size_2_31 && fail "the input alone: $said"
[[ $said == *"$planted"* ]] || fail "the input alone is not what is run: $said"
run "$folder/planted.zip" -- three_samples || fail "another input alone: $said"
[[ $said != *raw_size_2_31* ]] || fail "another input is not alone: $said"
run fuzz/hostile_ring_seeds/empty "$folder/sound.zip" -- --replay && fail "two of one name: $said"
[[ $said == *"two inputs have the same name" ]] || fail "two of one name are not told apart: $said"

finish "a bad input is named, and can be run alone"
