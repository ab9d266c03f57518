# shellcheck shell=bash
# Sourced by every shell test, in the workspace's folder. `finish` ends the test; until then the
# test has a folder of its own, $folder.
folder=$(mktemp -d)
trap 'rm -rf "$folder" "$folder.failures"' EXIT

# Also counts in subshells and in the background.
fail() { # MESSAGE
  echo "FAILED: $*"
  echo "$*" >>"$folder.failures"
}

# Checks that FILE contains TABLE: as many lines as TABLE has, from its first line on.
has_table() { # FILE TABLE FROM: the command that prints the table
  [ -n "$2" ] || {
    fail "$3 prints nothing"
    return
  }
  local first found
  first=$(head -n 1 <<<"$2")
  found=$(grep -F -x -A "$(($(wc -l <<<"$2") - 1))" -- "$first" "$1")
  [ "$2" = "$found" ] || fail "$1 differs from $3: $(diff <(echo "$found") <(echo "$2"))"
}

# Waits up to a minute until a command succeeds.
wait_until() { # COMMAND
  local tenths
  for ((tenths = 0; tenths < 600; ++tenths)); do
    "$@" && return
    sleep 0.1
  done
  fail "not within a minute: $*"
}

finish() { # MESSAGE: printed if nothing failed
  [ -e "$folder.failures" ] && exit 1
  echo "$*"
  exit 0
}
