#!/usr/bin/env bash
# Tests `cmake --install` into a prefix that is then moved: find_package() and pkg-config find the
# library there, and the shared library exports the right symbols.
# usage: install_test.sh static|shared, in the workspace's folder
. ci/packaging/checkout.sh
kind=$1
need cmake g++ pkg-config
cp -RL CMakeLists.txt lib ci "$folder"
cd "$folder" || exit 1

case $kind in
  static) shared=OFF library=libperfring.a ;;
  shared) shared=ON library=libperfring.so.${version%.*} ;;
esac
mkdir tree && mv CMakeLists.txt lib tree
succeeds cmake -S tree -B build -DCMAKE_INSTALL_PREFIX="$folder/first" -DBUILD_SHARED_LIBS=$shared
succeeds cmake --build build
succeeds cmake --install build
mv first moved
rm -r build
mv tree hidden # no installed file may refer to the source tree
[ -n "$(find moved -name "$library")" ] || fail "no $library: $(find moved)"
grep -rlF -e "$folder/first" -e "$folder/tree" -e "$folder/build" moved --include='*.cmake' --include='*.pc' &&
  fail "the files above know where they were built"
libdir=$(dirname "$(find moved -name "$library")")
export LD_LIBRARY_PATH=$folder/$libdir

# find_package(ARGUMENTS)
configure() {
  rm -rf consumer_build
  mkdir -p consumer
  printf '%s\n' "cmake_minimum_required(VERSION 3.25)" "project(consumer LANGUAGES CXX)" \
    "find_package(perfring $1)" "include(../ci/packaging/consumer/targets.cmake)" >consumer/CMakeLists.txt
  cmake -S consumer -B consumer_build -DCMAKE_PREFIX_PATH="$folder/moved" "${@:2}"
}
for standard in '' -DCMAKE_CXX_STANDARD=17; do # the targets raise the standard to theirs
  succeeds configure "${version%.*} CONFIG REQUIRED COMPONENTS ring perfring" $standard
  succeeds cmake --build consumer_build
  check_output 0 "perfring $version asked for: fcntl.* of map fd -1" consumer_build/consumer
  check_output 0 'drained as C\+\+ 202002' consumer_build/ring_consumer
done
check_output 1 "version \"99\".*version: $version" configure "99 CONFIG REQUIRED"
check_output 1 "version \"0.0.1\".*version: $version" configure "0.0.1 CONFIG REQUIRED" # another API
check_output 1 "no component 'records'" configure "CONFIG REQUIRED COMPONENTS records"

export PKG_CONFIG_PATH=$libdir/pkgconfig
check_output 0 "^$version $" pkg-config --modversion perfring
check_output 1 "newer|>= 99" pkg-config --print-errors --exists 'perfring >= 99'
# shellcheck disable=SC2046  # several arguments
succeeds g++ -std=c++2b ci/packaging/consumer/consumer.cc -o by_pkg_config $(pkg-config --cflags --libs perfring)
check_output 0 "perfring $version asked for" ./by_pkg_config
case $kind in
  shared)
    readelf -d by_pkg_config | grep -q "NEEDED.*\[$library\]" || fail "$library is not what is linked"
    # Ignore templates of the C++ library, which every shared library exports.
    nm -D --defined-only "$libdir/$library" | cut -d ' ' -f 3 |
      grep -vE '^_Z(GV|T[ISV])?Z?(NK?)?(St|9__gnu_cxx)' | c++filt | sort -u >exported
    grep -v '^#' ci/packaging/symbols.txt | sort -u | diff - exported ||
      fail "ci/packaging/symbols.txt (<) is not what $library exports (>)"
    ;;
esac
finish "$kind: found by find_package() and by pkg-config"
