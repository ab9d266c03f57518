#!/usr/bin/env bash
# Runs every program in hostile environments: closed or full output, few descriptors, little memory,
# odd files. Its messages may be lost, but it must end by itself, with the documented exit code.
# usage: environments_test.sh PERFRING DRAIN SCRIPT_TOOL, in the workspace's folder
set -u
. lib/perfring/testing/test.sh
perfring=$(realpath "$1") drain=$(realpath "$2") script_tool=$(realpath "$3")
litmus=$PWD/harness/model/litmus/litmus.json
trace=$(realpath harness/differential/traces/*.trace)
vectors=$(realpath harness/record/vectors.jsonl)
cd "$folder" || exit 1
ulimit -c 0

# The sanitizers need more memory and descriptors than the limits below allow.
sanitized=
grep -q -e __asan_init -e __tsan_init -e __ubsan_handle "$perfring" && sanitized=yes

# If the address space is smaller than the program, the kernel kills it with SIGSEGV in execve()
# (load_elf_binary() in fs/binfmt_elf.c). This limit has room for the largest program, and hardly
# more.
little_room_kib=$(($(size "$perfring" "$drain" "$script_tool" | awk '$4 + 0 > most { most = $4 } END { print most }') / 1024 + 2000))

live=0
"$perfring" --seconds 0.1 >output 2>&1 || live=2
[ $live -eq 0 ] || echo "without the live kernel's part: $(head -n 2 output | tail -n 1)"

# The exit code of each command in a normal environment, and the command.
commands=(
  "0 $perfring --help"
  "0 $perfring --version"
  "2 $perfring --bogus"
  "$live $perfring --seconds 0.02"
  "0 $perfring --simulated --seconds 0.02"
  "0 $perfring sim --steps 1000000"
  "0 $perfring sim --list"
  "2 $perfring sim --set nonsense=1"
  "1 $perfring sim --fault commits_each"
  "0 $perfring check protocol --records 3 --drains 3"
  "3 $perfring check protocol --records 8 --drains 8 --seconds 0.01"
  "0 $perfring check --litmus $litmus"
  "0 $perfring stress --seconds 0.02"
  "$live $perfring diff --scripts 20"
  "0 $perfring diff --replay $trace"
  "0 $perfring decode $vectors"
  "0 $perfring decode --check $vectors"
  "0 $drain --benchmark_filter=^64K/8/count$ --benchmark_min_time=0.001"
  "0 $drain --benchmark_list_tests"
  "0 $script_tool script"
)

# run WANTED... -- COMMAND LINE: checks that the line ends with one of these codes within a minute.
# On a busy machine such a short run may show nothing (exit code 3): then it runs again for longer.
run() {
  local wanted=()
  while [ "$1" != -- ]; do
    wanted+=("$1")
    shift
  done
  shift
  local line=$1 code seconds
  for seconds in "" 0.5 2 5; do
    [ -z "$seconds" ] || line=$(sed -E "s/--seconds [0-9.]+/--seconds $seconds/" <<<"$1")
    timeout -s KILL 60 bash -c "$line" 2>>bash
    code=$?
    [[ $code -eq 3 && " ${wanted[*]} " != *" 3 "* && $1 == *"--seconds "* ]] || break
  done
  echo >>runs
  [[ " ${wanted[*]} " == *" $code "* ]] && return
  fail "exit code $code in place of ${wanted[*]}: $1"
}

# Runs a command in every environment. in_background gives it its own folder.
try() { # CODE COMMAND
  local code=$1 command=$2
  printf 'output 8\ndrain 1\n' >script
  mkfifo unread
  exec 8<>unread # a full pipe that nobody reads
  head -c 65536 /dev/zero >&8
  mkfifo broken
  local broken='exec 9<>broken 7>broken 9>&-;' # 7: a pipe without a reader
  # The verdict does not depend on stderr.
  run "$code" -- "$command >out 2>&-"
  run "$code" -- "$command >out 2>/dev/full"
  run "$code" -- "$broken $command >out 2>&7"
  # An error waits for its reader, and so does a sanitizer's message about fibers.
  [ "$code" -eq 2 ] || [ -n "$sanitized" ] || run "$code" -- "$command >out 2>unread"
  run "$code" -- "$command <&- >out 2>err"
  # A program that cannot write its verdict fails; an error needs no stdout.
  run 2 -- "$command >&-"
  run 2 -- "$command >/dev/full 2>err"
  [ "$code" -eq 2 ] || grep -q 'cannot be written to stdout: No space left' err ||
    fail "no reason: $command: $(cat err)"
  run 2 -- "$broken $command >&7"
  run 2 -- "$command <&- >&- 2>&-"
  # A slow reader gets the whole output.
  run "$code" -- "$command 2>err | (sleep 0.3; cat >slow); exit \${PIPESTATUS[0]}"
  [ "$code" -eq 2 ] || [ -s slow ] || fail "nothing was written: $command"
  # Files must not grow (rings are files in memory), and the parent ignores SIGCHLD. Before main(),
  # TSan writes its own temporary file if it finds a folder for it (MapRodata() in compiler-rt's
  # tsan_platform_linux.cpp at llvmorg-19.1.7).
  run 2 -- "ulimit -f 0; TMPDIR=$PWD/nowhere $command >large 2>/dev/null"
  run "$code" 2 -- "ulimit -f 0; TMPDIR=$PWD/nowhere $command 2>large | cat >/dev/null; exit \${PIPESTATUS[0]}"
  run "$code" -- "env --ignore-signal=CHLD $command >out 2>err"
  # The working folder is deleted.
  mkdir gone && cp script gone
  run "$code" -- "cd gone; rm -r ../gone; ${command/ script/ $PWD/script} >$PWD/out 2>&1"
  [ -z "$sanitized" ] || return
  # Few descriptors or little memory: the program succeeds or gives a reason. 127 comes from the
  # dynamic linker.
  for files in 3 4 5 6 8 11; do
    run "$code" 2 127 -- "exec >out 2>err; ulimit -n $files; exec $command"
  done
  for kib in $little_room_kib 20000 40000 80000; do
    run "$code" 2 127 -- "exec >out 2>err; ulimit -v $kib; exec $command"
  done
}

# Files without an end, files that are not text, and names and contents with escape sequences.
try_file() { # COMMAND
  run 2 -- "ulimit -v 1000000; $1 /dev/zero 2>err"
  run 2 -- "ulimit -v 1000000; yes | $1 - 2>err"
  run 2 -- "$1 /dev/null 2>err"
  run 2 -- "$1 $perfring 2>err"
  run 2 -- "$1 \$'x\e]0;owned\a' 2>err"
  grep -q $'[\e\a]' err && fail "$1 prints what a terminal acts on: $(cat -v err)"
  printf 'a\e[2Jb\n' >odd
  run 2 -- "$1 odd 2>err"
  grep -q $'[\e\a]' err && fail "$1 prints what is in a file: $(cat -v err)"
  # A pipe that nobody writes to: signals end the program with 128 and their number, as usual.
  mkfifo pipe
  run 143 -- "$1 pipe 2>err & sleep 0.3; kill -TERM \$!; wait \$!"
  run 130 -- "env --default-signal=INT $1 pipe 2>err & sleep 0.3; kill -INT \$!; wait \$!"
}

# On a busy machine a program may take long to start.
until_sigterm_is_caught='until [ $((0x$(sed -n "s/^SigCgt:\t//p" /proc/$!/status) >> 14 & 1)) -eq 1 ]; do sleep 0.05; done'

# A signal must end the program even if nobody reads its verdict.
try_signals() {
  mkfifo verdict
  exec 7<>verdict
  head -c 65536 /dev/zero >&7
  for command in "sim --steps 1000" "check protocol --records 2 --drains 2" "check --litmus $litmus" \
    "--simulated --seconds 0.05" "stress --seconds 0.1" "diff --replay $trace" --help; do
    run 143 -- "$perfring $command >verdict 2>err & sleep 1.5; kill -TERM \$!; wait \$!"
  done
  # The same with a consumer that never ends, because its fault makes it read forever, and with a
  # long trace.
  run 1 -- "$perfring sim --scenario crossing_4gib --fault leaves_last_record --steps 5000 >out 2>err"
  {
    printf 'byte_order little\npage_size 4096\ncpu 0\npid 1\ntid 1\nids 1 2\npages 1024\n'
    yes 'poll => 0 head 0 tail 0 lost 0 0 time 0' | head -n 90000
  } >long
  run 3 -- "$perfring diff --replay long >out 2>err & $until_sigterm_is_caught; kill -TERM \$!; wait \$!"
  # A pipe instead of a file.
  mkdir traces && mkfifo traces/seed-1.trace
  run 2 -- "$perfring diff --record traces --scripts 1 >out 2>err"
}

# Runs that need much memory.
try_large() {
  for kib in 40000 200000; do
    run 0 2 -- "ulimit -v $kib; $perfring sim --set cpus=64 --steps 100000 >out 2>err"
    run 0 2 -- "ulimit -v $kib; $perfring stress --seconds 0.1 --rings 64 >out 2>err"
  done
  for kib in 40000 80000; do
    run 3 2 -- "ulimit -v $kib; $perfring check protocol --records 9 --drains 9 --seconds 2 >out 2>err"
  done
  run 2 -- "ulimit -v 60000; $perfring stress --seconds 0.1 --rings 64 >out 2>err"
}

# in_background FUNCTION ARGUMENT...: runs up to four functions at once, each in its own folder.
started=0
in_background() {
  [ $started -lt 4 ] || wait -n
  started=$((started + 1))
  mkdir $started
  (cd $started && "$@") &
}
# Start the longest runs first.
[ -n "$sanitized" ] || in_background try_signals
for each in "${commands[@]}"; do in_background try "${each%% *}" "${each#* }"; done
for option in "sim --scenario" "check --litmus" "diff --script" "diff --replay"; do
  [ -n "$sanitized" ] || in_background try_file "$perfring $option"
done
[ -n "$sanitized" ] || in_background try_large
wait

runs=$(cat ./*/runs | wc -l)
echo "$runs runs"
[ "$runs" -gt "$([ -n "$sanitized" ] && echo 150 || echo 450)" ] || fail "too few runs"
finish "each ends by itself, with its exit code"
