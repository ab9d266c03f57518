# shellcheck shell=bash disable=SC2154 # test.sh and the tests set its variables
# Sourced, after perfring/testing/test.sh, by tests that read the machine code of C++: no test that
# runs on x86 can tell whether a fence is there.

# An empty file for glibc's list of the stubs in libc, which this machine has for its own processor
# only.
mkdir "$folder/gnu" && touch "$folder/gnu/stubs.h"

# The folders of this machine's C++ headers, whatever their version.
headers=()
while IFS= read -r directory; do
  headers+=(-isystem "$directory")
done < <(g++ -x c++ -E -v /dev/null 2>&1 | sed -n '/^#include </,/^End of/s,^ \(/.*/c++/.*\),\1,p')

# Prints the instructions of one function, in one line.
instructions() { # ASSEMBLY FUNCTION
  sed -n "/^$2:/,/\.size[[:space:]]*$2/p" <<<"$1" |
    grep -E '^[[:space:]]+[a-z]' | tr -s '[:blank:]' ' ' | tr '\n' ';'
}

expect() { # WHAT TEXT REGEX
  grep -qE "$3" <<<"$2" || fail "$1: expected /$3/ in: $2"
}

# Compiles $source, with headers from $include, into $assembly.
compile() { # COMPILER and options, including the target
  # The kernel's and libstdc++'s headers of this machine suffice: only their types are used.
  assembly=$("$@" -x c++ -std=c++2b -O2 -S -o - -I"$include" \
    -isystem "$folder" "${headers[@]}" \
    -idirafter "/usr/include/$(g++ -print-multiarch)" -fno-asynchronous-unwind-tables \
    - <<<"$source" 2>&1) && return
  fail "$* does not compile: $assembly"
  return 1
}
