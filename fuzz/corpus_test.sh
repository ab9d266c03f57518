#!/usr/bin/env bash
# What is checked in stays small, and is what the targets are run on, by rules_fuzzing's names.
# usage: corpus_test.sh, in the workspace's folder
set -u
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
bytes=$(cat fuzz/*_seeds/* fuzz/*_corpus/* fuzz/*_regressions/* | wc -c)
files=$(ls fuzz/*_seeds fuzz/*_corpus fuzz/*_regressions | wc -l)
echo "$files inputs of $bytes bytes"
[ "$files" -gt 100 ] || fail "there is no corpus"
[ "$bytes" -le $((2 * 1024 * 1024)) ] || fail "at most 2 MiB"

rule() { # NAME: as it is, in one line
  tr -d '\n' <fuzz/rules | sed 's/# [^ ]*BUILD.bazel/\n&/g' | grep -F "name = \"$1\","
}
says() { # RULE NAME TEXT
  [[ $1 == *"$3"* ]] || fail "//fuzz:$2 is without $3"
}
for source in $(grep -l '^extern .* LLVMFuzzerTestOneInput.*{$' fuzz/*.cc); do
  target=$(basename "$source" .cc)
  inputs="\"\$(rootpaths :${target}_corpus)\""
  says "$(rule "$target")" "$target" "\"-runs=0\", $inputs"
  says "$(rule "${target}_run")" "${target}_run" "\"\$(rootpath :${target}_dict)\", $inputs, \"--\""
  longest=$(sed -n 's/^max_len = //p' "fuzz/$target.options")
  dictionary=$(sed -n 's/^dict = //p' "fuzz/$target.options")
  says "$(rule "${target}_dict")" "${target}_dict" "\"//fuzz:$dictionary\""
  corpus=$(rule "${target}_corpus")
  for file in fuzz/"$target"_{seeds,corpus,regressions}/*; do
    [ -e "$file" ] || continue
    says "$corpus" "${target}_corpus" "\"//fuzz:${file#fuzz/}\""
    [ "$(stat -Lc %s "$file")" -le "$longest" ] || fail "libFuzzer cuts $file off at $longest bytes"
  done
done
says "$(rule canary)" canary '"no-oss-fuzz"'

# The canary's bug is there to be found.
said=$(${PERFRING_RUN_UNDER-} fuzz/canary_bin fuzz/hostile_ring_seeds/raw_size_2_31 2>&1) && fail "the canary's bug is not met"
[[ $said == *"violated: a Sample, but not to the reference"* ]] || fail "the canary: $said"

[ $failures -eq 0 ] && echo "and each is run"
exit $((failures != 0))
