#!/usr/bin/env bash
# Builds the fuzz targets as OSS-Fuzz and ClusterFuzzLite require: with their compiler ($CXX,
# $CXXFLAGS) and their engine ($LIB_FUZZING_ENGINE), into $OUT. Does not use Bazel, because Bazel
# links Debian's libraries, and here all code must be built with the sanitizer.
# TARGETS: a subset [hostile_ring kernel_script two_consumers and all in fuzz/parsers].
# JOBS: number of concurrent compilers [all CPUs].
set -euo pipefail
usage="usage: ci/oss-fuzz/build.sh [--sources]   (the environment says what is built, and where to; --sources: of what)"
only_sources=no
case "$*" in
  "") ;;
  --sources) only_sources=yes ;;
  -h | --help)
    echo "$usage"
    exit 0
    ;;
  *)
    echo "ci/oss-fuzz/build.sh: unknown argument '$*'; $usage" >&2
    exit 2
    ;;
esac
cd "$(dirname "$(readlink -f "$0")")/../.."
rings=(hostile_ring kernel_script two_consumers)
mapfile -t parsers < <(sed -n 's|^\[\(parsers/.*\)\]$|\1|p' fuzz/options.ini)
read -ra targets <<<"${TARGETS:-${rings[*]} ${parsers[*]}}"
# MemorySanitizer does not see the writes of an uninstrumented Boost, and has no 32-bit version.
if [ -z "${TARGETS:-}" ] && { [ "${SANITIZER:-}" = memory ] || [ "${ARCHITECTURE:-}" = i386 ]; }; then
  targets=("${rings[@]}")
fi

ring=(harness/oracle/*.cc)
script=(harness/{kernel,oracle,rig,script}/*.cc harness/program/{json,verdict}.cc)
event=(lib/perfring/event/*.cc lib/perfring/event/diagnosis/*.cc)
parser=("${script[@]}" harness/simulator/*.cc harness/model/*.cc harness/model/*/*.cc
  harness/differential/{compare,trace}.cc harness/bench/bench_options.cc
  harness/stress/*.cc harness/faults/{fault_catalogue,consumer_table,kernel_table}.cc harness/program/*.cc
  harness/cli/{command_line,*/*_options}.cc
  harness/record/*.cc lib/perfring/{os,record}/*.cc
  "${event[@]}" fuzz/parsers/{files,options}.cc)

sources() { # TARGET
  case $1 in
    hostile_ring | planted_fault) printf '%s\n' "${ring[@]}" fuzz/rings.cc ;;
    merge) printf '%s\n' "${ring[@]}" fuzz/merges.cc ;;
    record) printf '%s\n' lib/perfring/record/*.cc fuzz/records.cc ;;
    parsers/*) printf '%s\n' "${parser[@]}" ;;
    *) printf '%s\n' "${script[@]}" fuzz/script{s,_bytes}.cc ;;
  esac | grep -v _test.cc | sort -u
}
# Report a missing source before anything compiles; the compiler would find it only after minutes.
no() {
  echo "ci/oss-fuzz/build.sh: there is no $*" >&2
  exit 2
}
for target in "${targets[@]}"; do grep -qxF "[$target]" fuzz/options.ini || no "target $target"; done
mapfile -t all < <(for target in "${targets[@]}"; do sources "$target"; done | sort -u)
for source in "${all[@]}" fuzz/target.cc; do [ -f "$source" ] || no "$source"; done
[ $only_sources = no ] || {
  printf '%s\n' "${all[@]}"
  exit 0
}

: "${CXX:?}" "${LIB_FUZZING_ENGINE:?}" "${OUT:?}"
read -ra engine <<<"$LIB_FUZZING_ENGINE"
read -ra flags <<<"${CXXFLAGS:-}"
flags+=(-std=c++2b -I. -Ilib -DFMT_HEADER_ONLY)
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
object() { echo "$objects/${1//\//_}.o"; }

for source in "${all[@]}"; do printf '%s %s\n' "$source" "$(object "$source")"; done |
  COMPILE="$CXX ${flags[*]}" xargs -L 1 -P "${JOBS:-$(nproc)}" sh -c '$COMPILE -c "$0" -o "$1"'

for target in "${targets[@]}"; do
  name=${target##*/}
  mapfile -t files < <(sources "$target")
  linked=()
  for file in "${files[@]}"; do linked+=("$(object "$file")"); done
  libraries=()
  # Boost is not linked statically: it was built for libstdc++, and the rest uses libc++.
  # shellcheck disable=SC2054 # the commas are the linker's
  [ "$target" = "$name" ] ||
    libraries=(-lboost_context '-Wl,-rpath,$ORIGIN/lib' -Wl,--disable-new-dtags)
  "$CXX" "${flags[@]}" "-DTARGET=$name" fuzz/target.cc "${linked[@]}" "${engine[@]}" "${libraries[@]}" -pthread \
    -o "$OUT/$name"
  if [ ${#libraries[@]} -gt 0 ]; then # the machine that runs it has no Boost
    mkdir -p "$OUT/lib"
    ldd "$OUT/$name" | awk '$1 ~ /^lib(boost_context|stdc\+\+|gcc_s)\./ {print $3}' |
      while read -r library; do # an earlier parser may have copied it, and ldd then finds the copy
        [ "$library" -ef "$OUT/lib/${library##*/}" ] || cp -Lf "$library" "$OUT/lib"
      done
  fi
  python3 - "$target" >"$OUT/$name.options" <<'PYTHON'
import pathlib, sys
sys.path.insert(0, "ci")
from jobs.fuzz_target import options_of
print("[libfuzzer]", *map(" = ".join, options_of(pathlib.Path(sys.argv[1])).items()), sep="\n")
PYTHON
  inputs=$(mktemp -d -p "$objects")
  fuzz/seeds.py "$target" "$inputs"
  [ ! -d "fuzz/${target}_regressions" ] || cp "fuzz/${target}_regressions"/* "$inputs"
  [ ! -e "fuzz/${target}_corpus.zip" ] || python3 -m zipfile -e "fuzz/${target}_corpus.zip" "$inputs"
  rm -f "$OUT/${name}_seed_corpus.zip"
  python3 -m zipfile -c "$OUT/${name}_seed_corpus.zip" "$inputs"/*
done
cp fuzz/*.dict fuzz/parsers/*.dict "$OUT/"
