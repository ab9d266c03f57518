#!/usr/bin/env bash
# script_tool: each seed of kernel_script is printed, edited and replayed; what is no script is refused.
# usage: script_tool_test.sh, in the workspace's folder
set -u
. lib/perfring/testing/test.sh
workspace=$PWD
tool() { ${PERFRING_RUN_UNDER-} "$workspace/fuzz/script_tool" "$@"; }
cd "$folder" || exit 1

expect() { # STATUS TEXT OPTION...
  local status=$1 text=$2 said
  shift 2
  said=$(tool "$@" 2>&1)
  local ended=$?
  [ $ended -eq "$status" ] && [[ $said == *"$text"* ]] ||
    fail "$* ended with $ended: $said"
}
for seed in "$workspace"/fuzz/kernel_script_seeds/*; do
  tool --text "$seed" >script
  tool --bytes script >bytes
  expect 0 "$(cat script)" --text bytes
  case $(tool script) in
    *'; 0 delivered, 0 malformed'*) expect 3 'Not shown: nothing was delivered' script ;;
    *) expect 0 'All invariants hold.' script ;;
  esac
  accepted=$(tool script | sed -n 's/.*attempted, \([0-9]*\) accepted.*/\1/p')
  { cat script; printf 'enable\nresume\ndrain 99\noutput 8\n'; } >edited
  expect 0 "$((accepted + 1)) accepted" edited
done
expect 2 'Is a directory' .
expect 2 'Is a directory' --text .
expect 2 'cannot be read' nothing
expect 2 "'tail'" <(echo 'tail 8')
expect 2 'not a step or a setting' <(echo nonsense)
expect 2 'file is required'
expect 2 "'--txt' is not an option here" --txt script
expect 2 'is empty' /dev/null
expect 2 'larger than 4 MiB' /dev/zero
expect 3 'nothing was delivered' <(echo 'drain 1')
expect 3 'nothing was delivered' <(printf 'pause\noutput 8\n')

finish "a seed is printed, edited and replayed, and other files are refused"
