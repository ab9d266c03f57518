#!/usr/bin/env bash
# Runs a fuzz target on a copy of its inputs: fuzzes, replays all inputs, or runs the named files.
# usage: run.sh LABEL PROGRAM DICTIONARY [INPUT|FOLDER|ARCHIVE...] --
#          [OPTION OF LIBFUZZER'S | FILE | FOLDER | NAME OF AN INPUT... | --replay]
set -euo pipefail
label=$1 program=$(realpath "$2") dictionary=$(realpath "$3")
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
corpus=$folder/corpus
mkdir "$corpus"
total=0
while [ "$1" != -- ]; do
  case $1 in
    *.zip)
      python3 -m zipfile -e "$1" "$corpus"
      total=$((total + $(python3 -m zipfile -l "$1" | tail -n +2 | wc -l)))
      ;;
    *)
      if [ -d "$1" ]; then files=("$1"/*); else files=("$1"); fi
      # Writable copies, so that an input of the same name overwrites one and is counted as such.
      cp -L --no-preserve=mode "${files[@]}" "$corpus"
      total=$((total + ${#files[@]}))
      ;;
  esac
  shift
done
shift
[ "$(ls "$corpus" | wc -l)" -eq $total ] || {
  echo "$label: two inputs have the same name" >&2
  exit 2
}

run() { ${PERFRING_RUN_UNDER-} "$program" "$@"; }

if [ "${1-}" = --replay ]; then
  cd "$corpus"
  run -runs=0 ./* 2>&1 | tee "$folder/log" && exit
  last=$(sed -n 's|^Running: \./||p' "$folder/log" | tail -n 1)
  echo "FAILED on the input $last. Replay: bazel run $label -- $last" >&2
  exit 1
fi

options=() folders=() files=()
for argument; do
  case $argument in -*)
    options+=("$argument")
    continue
    ;;
  esac
  # Paths are relative to the caller's folder, but `bazel run` starts in another one.
  for path in "$argument" "${BUILD_WORKING_DIRECTORY:-.}/$argument" "$corpus/$argument"; do
    [ ! -e "$path" ] || break
  done
  if [ -d "$path" ]; then folders+=("$path"); else files+=("$path"); fi
done
if [ ${#files[@]} -gt 0 ]; then
  run "${options[@]}" "${files[@]}"
else
  run "${options[@]}" "-dict=$dictionary" "$corpus" "${folders[@]}"
fi
