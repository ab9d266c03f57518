# shellcheck shell=bash
# Sourced by every shell test, in the workspace's folder. `finish` ends the test; until then it has a
# folder of its own, $folder.
folder=$(mktemp -d)
trap 'rm -rf "$folder" "$folder.failures"' EXIT

# Counts in subshells and in the background, too.
fail() { # MESSAGE
  echo "FAILED: $*"
  echo "$*" >>"$folder.failures"
}

# As many lines of a file as the table has, from the table's first line on, are the table.
has_table() { # FILE TABLE FROM: what prints the table
  [ -n "$2" ] || { fail "$3 prints nothing"; return; }
  local first found
  first=$(head -n 1 <<<"$2")
  found=$(grep -F -x -A "$(($(wc -l <<<"$2") - 1))" -- "$first" "$1")
  [ "$2" = "$found" ] || fail "$1 differs from $3: $(diff <(echo "$found") <(echo "$2"))"
}

# Up to a minute, for a command that succeeds once something has happened.
wait_until() { # COMMAND
  local tenths
  for ((tenths = 0; tenths < 600; ++tenths)); do
    "$@" && return
    sleep 0.1
  done
  fail "not within a minute: $*"
}

finish() { # MESSAGE: what holds if nothing failed
  [ -e "$folder.failures" ] && exit 1
  echo "$*"
  exit 0
}
