#!/usr/bin/env bash
# Tests the tree as part of another CMake project, by add_subdirectory() and FetchContent, and
# CMake's messages if something is missing.
# usage: subdirectory_test.sh, in the workspace's folder
. ci/packaging/checkout.sh
need cmake g++
mkdir "$folder/tree"
cp -RL CMakeLists.txt lib "$folder/tree"
cp -RL ci "$folder"
cd "$folder" || exit 1

configure() { # LINE... [-- OPTION...]
  local lines=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    lines+=("$1")
    shift
  done
  rm -rf build consumer
  mkdir consumer
  printf '%s\n' "cmake_minimum_required(VERSION 3.25)" "project(consumer VERSION 7.8.9 LANGUAGES CXX)" \
    "${lines[@]}" "include(../ci/packaging/consumer/targets.cmake)" >consumer/CMakeLists.txt
  cmake -S consumer -B build "${@:2}"
}
succeeds configure 'add_subdirectory(../tree perfring)'
succeeds cmake --build build
for standard in 17 20; do # the other project's standard
  succeeds configure "set(CMAKE_CXX_STANDARD $standard)" 'add_subdirectory(../tree perfring)'
done
succeeds configure 'add_subdirectory(../tree perfring)'
succeeds cmake --build build
check_output 0 "perfring $version asked for: fcntl.* of map fd -1" build/consumer
check_output 0 'drained as C\+\+ 202002' build/ring_consumer
# The other project installs only its own files, and runs only its own tests.
succeeds cmake --install build --prefix "$folder/installed"
[ ! -e installed ] || fail "installed were $(find installed)"
check_output 0 'No tests were found' ctest --test-dir build
succeeds configure 'include(FetchContent)' \
  'FetchContent_Declare(perfring SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR}/../tree)' \
  'FetchContent_MakeAvailable(perfring)' -- -DFETCHCONTENT_FULLY_DISCONNECTED=ON
succeeds cmake --build build --target ring_consumer

# An older compiler, which does not support the latest standards.
compiler() { # NAME STANDARD
  printf '#!/bin/sh\nexec g++ "$@" -std=%s\n' "$2" >"$1"
  chmod +x "$1"
}
compiler old c++20
tree() {
  rm -rf tree_build
  cmake -S tree -B tree_build "$@"
}
check_output 1 'needs std::expected, as g\+\+ 12.*-DPERFRING_RING_ONLY=ON' tree -DCMAKE_CXX_COMPILER="$folder/old"
succeeds tree -DCMAKE_CXX_COMPILER="$folder/old" -DPERFRING_RING_ONLY=ON
succeeds cmake --build tree_build
succeeds cmake --install tree_build --prefix "$folder/ring_only"
[ ! -e ring_only/include/perfring/perfring.h ] || fail "PERFRING_RING_ONLY installs more than the ring"
succeeds configure 'find_package(perfring CONFIG REQUIRED COMPONENTS ring)' -- \
  -DCMAKE_PREFIX_PATH="$folder/ring_only" -DCMAKE_CXX_COMPILER="$folder/old"
succeeds cmake --build build
check_output 1 "no component 'perfring'" configure 'find_package(perfring CONFIG REQUIRED COMPONENTS perfring)' -- \
  -DCMAKE_PREFIX_PATH="$folder/ring_only"
check_output 1 'needs GoogleTest' tree -DPERFRING_BUILD_TESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
check_output 1 'PERFRING_BUILD_TESTS needs the library' tree -DPERFRING_BUILD_TESTS=ON -DPERFRING_RING_ONLY=ON
sed -i 's/^\(#define PERFRING_VERSION_MINOR\) .*/\1 x/' tree/lib/perfring/version.h
check_output 1 'does not define PERFRING_VERSION_MINOR as a number' tree
finish "a part of another project"
