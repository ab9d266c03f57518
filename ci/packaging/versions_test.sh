#!/usr/bin/env bash
# Every file that states a version states the one in lib/perfring/version.h.
# usage: versions_test.sh, in the workspace's folder
. ci/packaging/checkout.sh
need g++

states() { # FILE REGEX: the first matching line has the version in the regex's parentheses
  local found
  found=$(sed -nE "s/$2/\1/p" "$1" | head -n 1)
  [ "$found" = "$version" ] || fail "$1 states '$found', lib/perfring/version.h $version"
}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "lib/perfring/version.h has no version: '$version'"
states CHANGELOG.md '^## ([^ ]*).*'
states MODULE.bazel '^ *version = "(.*)",$'
states ci/packaging/debian/changelog '^perfring \((.*)\) .*'
IFS=. read -r major minor patch <<<"$version"
printf '%s\n' '#include "perfring/version.h"' "#include <string_view>" \
  "static_assert(std::string_view{PERFRING_VERSION} == \"$version\");" \
  "static_assert(PERFRING_VERSION_NUMBER == $((major * 10000 + minor * 100 + patch)));" >"$folder/macros.cc"
g++ -std=c++20 -Ilib -fsyntax-only "$folder/macros.cc" || fail "the macros of lib/perfring/version.h"
finish "$version everywhere"
