#!/usr/bin/env bash
# script_tool: a crash is printed, edited and replayed; what is no script is refused.
# usage: script_tool_test.sh, in the workspace's folder
set -u
failures=0
expect() { # STATUS TEXT OPTION...
  local status=$1 text=$2 said
  shift 2
  said=$(${PERFRING_RUN_UNDER-} fuzz/script_tool "$@" 2>&1)
  local ended=$?
  [ $ended -eq "$status" ] && [[ $said == *"$text"* ]] ||
    { echo "FAILED: $* ended with $ended: $said"; failures=$((failures + 1)); }
}
for crash in fuzz/kernel_script_regressions/*; do
  ${PERFRING_RUN_UNDER-} fuzz/script_tool --text "$crash" >script
  ${PERFRING_RUN_UNDER-} fuzz/script_tool --bytes script >bytes
  expect 0 "$(cat script)" --text bytes
  case $(${PERFRING_RUN_UNDER-} fuzz/script_tool script) in
    *'; 0 delivered, 0 malformed,'*) expect 3 'Not shown: nothing was delivered' script ;;
    *) expect 0 'All invariants hold.' script ;;
  esac
  accepted=$(${PERFRING_RUN_UNDER-} fuzz/script_tool script | sed -n 's/ accepted.*//p')
  { cat script; printf 'enable\nresume\noutput 8\n'; } >edited
  expect 0 "$((accepted + 1)) accepted" edited
done
expect 2 'Is a directory' fuzz
expect 2 'Is a directory' --text fuzz
expect 2 'cannot be read' nothing
expect 2 "'tail'" <(echo 'tail 8')
expect 2 'no such step' <(echo nonsense)
expect 2 'file is required'
expect 2 "'--txt' is not an option here" --txt script
expect 2 'is empty' /dev/null
expect 2 'larger than 4 MiB' /dev/zero
expect 3 'nothing was delivered' <(echo 'drain 1')
expect 3 'nothing was delivered' <(printf 'pause\noutput 8\n')
exit $((failures != 0))
