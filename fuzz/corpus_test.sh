#!/usr/bin/env bash
# What is checked in stays small.
# usage: corpus_test.sh, in the workspace's folder
set -u
bytes=$(cat fuzz/*_seeds/* fuzz/*_corpus/* fuzz/*_regressions/* | wc -c)
files=$(ls fuzz/*_seeds fuzz/*_corpus fuzz/*_regressions | wc -l)
echo "$files inputs of $bytes bytes"
[ "$files" -gt 100 ] || { echo "FAILED: there is no corpus"; exit 1; }
[ "$bytes" -le $((2 * 1024 * 1024)) ] || { echo "FAILED: at most 2 MiB"; exit 1; }
