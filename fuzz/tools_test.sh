#!/usr/bin/env bash
# Tests the tools: seeds.py, run.sh, script_tool.
# usage: tools_test.sh, in the workspace's folder
set -u
. lib/perfring/testing/test.sh

# seeds.py writes each text of seeds.txt as a seed of an existing parser, and refuses a malformed
# text.
for parser in $(sed -n 's,^\[parsers/\(.*\)\]$,\1,p' fuzz/options.ini); do
  mkdir "$folder/$parser"
  fuzz/seeds.py "parsers/$parser" "$folder/$parser" || fail "$parser has no seeds"
done
while read -r _ parser name; do
  [ -s "$folder/$parser/$name" ] || fail "the text $parser $name is not a seed of a parser"
done < <(grep '^=== ' fuzz/parsers/seeds.txt)
[ "$(od -c "$folder/diff_options/cpu_2")" = "$(printf '%s' $'--cpu\n2' | od -c)" ] ||
  fail "a command line's words are not lines"
[ "$(od -c "$folder/diff_options/cpu_of_no_character")" = "$(printf -- '--cpu\n\0' | od -c)" ] ||
  fail "\\0 is not the byte 0"
[ "$(od -c "$folder/settings/unknown")" = "$(echo 'colour 3' | od -c)" ] || fail "a text is not a file"
[ "$(cat "$folder/vectors/namespaces")" = "$(grep '"name": "namespaces"' harness/record/vectors.jsonl)" ] ||
  fail "a vector is not its line"

mkdir "$folder/fuzz" "$folder/seeds"
cp fuzz/seeds.py "$folder/fuzz"
refuses() { # MESSAGE TARGET TEXT: in place of scripts.txt
  printf "$3" >"$folder/fuzz/scripts.txt"
  output=$("$folder/fuzz/seeds.py" "$2" "$folder/seeds" 2>&1) && fail "not refused: $3"
  [ "$output" = "fuzz/seeds.py: $1" ] || fail "refusing $3, its output: $output"
}
good='=== a\noutput 1\n'
refuses 'there are no seeds of nothing' nothing "$good"
refuses 'there are no seeds of two_consumers' two_consumers ''
refuses "fuzz/scripts.txt: there are two 'a'" two_consumers "$good\n$good"
refuses "fuzz/scripts.txt: 'output 1' does not follow any \`=== NAME\`" two_consumers "output 1\n$good"
for step in 'tail 8' 'output' 'poll 1' 'write_backward 1' 'output 1 third' '> output 1'; do
  refuses "a: '$step': a step that seeds.py does not know" kernel_script "$good$step\n"
done
[ -z "$(ls "$folder/seeds")" ] || fail "a refused list left $(ls "$folder/seeds")"

# run.sh: a target's test fails for one bad input among many and names it, and this input can be run
# alone. The target is the one with a planted fault; the bad input triggers the fault.
run() { output=$(fuzz/run.sh //fuzz:planted_fault_run fuzz/planted_fault_bin fuzz/ring.dict "$@" 2>&1); }
planted="violated: intact: a Sample that the reference does not have"

python3 -m zipfile -c "$folder/sound.zip" fuzz/hostile_ring_seeds/{empty,three_samples}
python3 -m zipfile -c "$folder/planted.zip" fuzz/hostile_ring_seeds/{empty,raw_size_2_31,three_samples}
run fuzz/hostile_ring_seeds/breaks_once "$folder/sound.zip" -- --replay || fail "sound inputs: $output"
for name in breaks_once empty three_samples; do
  [[ $output == *"Running: ./$name"* ]] || fail "$name is not replayed: $output"
done
run fuzz/hostile_ring_seeds/breaks_once "$folder/planted.zip" -- --replay && fail "the planted bug: $output"
[[ $output == *"$planted"* ]] || fail "the planted bug is not named: $output"
[[ $output == *"Replay: bazel run //fuzz:planted_fault_run -- raw_size_2_31" ]] || fail "the input is not named: $output"
run fuzz/hostile_ring_seeds -- --replay && fail "the planted bug, in a folder: $output"
[[ $output == *"Replay: bazel run //fuzz:planted_fault_run -- raw_size_2_31" ]] || fail "the input in a folder is not named: $output"
run "$folder/planted.zip" -- raw_size_2_31 && fail "the input alone: $output"
[[ $output == *"$planted"* ]] || fail "the input alone is not what is run: $output"
run "$folder/planted.zip" -- three_samples || fail "another input alone: $output"
[[ $output != *raw_size_2_31* ]] || fail "another input is not alone: $output"
run fuzz/hostile_ring_seeds/empty "$folder/sound.zip" -- --replay && fail "two of one name: $output"
[[ $output == *"two inputs have the same name" ]] || fail "two of one name are not told apart: $output"

# script_tool prints, edits and replays each seed of kernel_script, and refuses a text that is not a
# script.
workspace=$PWD
tool() { ${PERFRING_RUN_UNDER-} "$workspace/fuzz/script_tool" "$@"; }
cd "$folder" || exit 1

expect() { # STATUS TEXT OPTION...
  local status=$1 text=$2 output
  shift 2
  output=$(tool "$@" 2>&1)
  local ended=$?
  [ $ended -eq "$status" ] && [[ $output == *"$text"* ]] ||
    fail "$* ended with $ended: $output"
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
  {
    cat script
    printf 'enable\nresume\ndrain 99\noutput 8\n'
  } >edited
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

finish "seeds are made, a bad input is named and run alone, a script is printed, edited and replayed"
