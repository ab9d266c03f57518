#!/usr/bin/env bash
# What X_run runs: a fuzz target on a copy of its corpus, with its dictionary; or on the files named.
# usage: run.sh PROGRAM DICTIONARY|- [INPUT...] -- [OPTION OF LIBFUZZER'S | FILE | FOLDER...]
set -euo pipefail
program=$1 dictionary=$2
shift 2
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
while [ "$1" != -- ]; do
  cp -L "$1" "$corpus/${1//\//_}"
  shift
done
shift
options=() folders=() files=()
for argument; do
  case $argument in -*) options+=("$argument"); continue ;; esac
  # Paths are the caller's, but `bazel run` starts elsewhere.
  [ -e "$argument" ] || argument=${BUILD_WORKING_DIRECTORY:-.}/$argument
  if [ -d "$argument" ]; then folders+=("$argument"); else files+=("$argument"); fi
done
if [ ${#files[@]} -gt 0 ]; then
  "$program" "${options[@]}" "${files[@]}"
else
  [ "$dictionary" = - ] || options+=("-dict=$dictionary")
  "$program" "${options[@]}" "$corpus" "${folders[@]}"
fi
