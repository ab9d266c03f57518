#!/usr/bin/env bash
# seeds.py: each text is a seed of a parser that is there; what is no seed is refused.
# usage: seeds_test.sh, in the workspace's folder
set -u
. lib/perfring/testing/test.sh

for parser in $(sed -n 's,^\[parsers/\(.*\)\]$,\1,p' fuzz/options.ini); do
  mkdir "$folder/$parser"
  fuzz/seeds.py "parsers/$parser" "$folder/$parser" || fail "$parser has no seeds"
done
while read -r _ parser name; do
  [ -s "$folder/$parser/$name" ] || fail "the text $parser $name is no seed of a parser"
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
  said=$("$folder/fuzz/seeds.py" "$2" "$folder/seeds" 2>&1) && fail "not refused: $3"
  [ "$said" = "fuzz/seeds.py: $1" ] || fail "refusing $3, it said: $said"
}
good='=== a\noutput 1\n'
refuses 'there are no seeds of nothing' nothing "$good"
refuses 'there are no seeds of two_consumers' two_consumers ''
refuses "fuzz/scripts.txt: there are two 'a'" two_consumers "$good\n$good"
refuses "fuzz/scripts.txt: 'output 1' is not behind any \`=== NAME\`" two_consumers "output 1\n$good"
for step in 'tail 8' 'output' 'poll 1' 'write_backward 1' 'output 1 third' '> output 1'; do
  refuses "a: '$step': a step that seeds.py does not know" kernel_script "$good$step\n"
done
[ -z "$(ls "$folder/seeds")" ] || fail "what was refused left $(ls "$folder/seeds")"

finish "each text is a seed, and what is no seed is refused"
