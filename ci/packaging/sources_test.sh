#!/usr/bin/env bash
# CMake builds and installs the same files as Bazel's targets have.
# usage: sources_test.sh, in the workspace's folder
. ci/packaging/checkout.sh
need cmake g++ python3
cp -RL CMakeLists.txt lib ci "$folder"
cd "$folder" || exit 1

# Bazel's //lib/perfring/os:cpus.cc is lib/perfring/os/cpus.cc.
files() { sed -e 's,^//,,' -e 's,:,/,' "ci/packaging/$1_files" | grep "$2" | sort; }
same() { # WHAT BAZEL CMAKE
  [ -s "$2" ] || fail "Bazel has no $1"
  diff "$2" "$3" || fail "the $1 of Bazel's target (<) are not those of lib/CMakeLists.txt (>)"
}

succeeds cmake -S . -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_INSTALL_PREFIX="$folder/all"
python3 -c '
import json, sys
for each in json.load(sys.stdin):
    print(each["file"].removeprefix(sys.argv[1] + "/"))' "$PWD" <build/compile_commands.json | sort >compiled
files library '\.cc$' >wanted
same sources wanted compiled

# Install the headers without building anything.
headers() { (cd "$1/include" && find . -name '*.h' -printf 'lib/%P\n' | sort); }
touch build/lib/libperfring.a
succeeds cmake --install build
files library '\.h$' >wanted
headers all >installed
same "library's headers" wanted installed

# The installed headers name the file of the facts that they cite.
cited=0
for facts in K:KERNEL_FACTS 'T|R:RECORD_FACTS' W:RINGS_FACTS; do
  while IFS= read -r header; do
    cited=$((cited + 1))
    grep -q "${facts#*:}[.]md" "$header" || fail "$header cites ${facts%:*}, and does not say where those are"
  done < <(grep -rlE "(^|[^A-Za-z0-9_])(${facts%:*})[0-9]+\b" all/include --include='*.h')
done
[ $cited -ge 20 ] || fail "only $cited headers cite facts"

succeeds cmake -S . -B ring -DPERFRING_RING_ONLY=ON -DCMAKE_INSTALL_PREFIX="$folder/ring_only"
succeeds cmake --install ring
{
  files ring '\.h$'
  echo lib/perfring/version.h
} | sort >wanted
headers ring_only >installed
same "ring's headers" wanted installed
finish "$(files library . | wc -l) files, in Bazel and in CMake"
