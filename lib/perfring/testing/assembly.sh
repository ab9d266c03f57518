# To be sourced by tests of what C++ becomes in machine code: no test that runs on x86 can tell
# whether a fence is there. After perfring/testing/test.sh.

# glibc's list of what this machine's libc lacks, which has no entry for other processors.
mkdir "$folder/gnu" && touch "$folder/gnu/stubs.h"

# Where this machine's C++ library has its headers, whatever its version.
headers=()
while IFS= read -r directory; do
  headers+=(-isystem "$directory")
done < <(g++ -x c++ -E -v /dev/null 2>&1 | sed -n '/^#include </,/^End of/s,^ \(/.*/c++/.*\),\1,p')

# The instructions of one function, in one line.
instructions() { # ASSEMBLY FUNCTION
  sed -n "/^$2:/,/\.size[[:space:]]*$2/p" <<<"$1" |
    grep -E '^[[:space:]]+[a-z]' | tr -s '[:blank:]' ' ' | tr '\n' ';'
}

expect() { # WHAT TEXT REGEX
  grep -qE "$3" <<<"$2" || fail "$1: expected /$3/ in: $2"
}

# Sets $assembly to what $source becomes, with headers from $include.
compile() { # COMPILER and options, for which processor
  # The kernel's and libstdc++'s headers of this machine serve: only their types are used.
  assembly=$("$@" -x c++ -std=c++2b -O2 -S -o - -I"$include" \
    -isystem "$folder" "${headers[@]}" \
    -idirafter "/usr/include/$(g++ -print-multiarch)" -fno-asynchronous-unwind-tables \
    - <<<"$source" 2>&1) && return
  fail "$* does not compile: $assembly"
  return 1
}
