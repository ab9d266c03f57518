#!/usr/bin/env bash
# A fuzz target as OSS-Fuzz takes it: X, X_seed_corpus.zip and X.dict.
# usage: package.sh X TARFILE PROGRAM DICTIONARY|'' [INPUT...]
set -euo pipefail
name=$1 tarfile=$PWD/$2 program=$3 dictionary=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -L "$program" "$folder/$name"
[ -z "$dictionary" ] || cp -L "$dictionary" "$folder/$name.dict"
[ $# -eq 0 ] || python3 -m zipfile -c "$folder/${name}_seed_corpus.zip" "$@"
tar -C "$folder" -cf "$tarfile" .
