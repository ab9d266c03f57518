#!/usr/bin/env bash
# Checks that no file is mapped that another process may truncate: SIGBUS kills a process that reads
# a mapping past the end of its file. Such files are read instead. The list below has each source that
# maps memory, with the reason why the length of the mapped file cannot change.
# usage: mappings_test.sh FILE: a file of the checkout, whose sources are read (links are followed)
set -u
. lib/perfring/testing/test.sh
cd "$(dirname "$(readlink -f "$1")")" || exit 1

cat >"$folder/allowed" <<'ALLOWED'
harness/anomaly/event_flows.cc                    no file
harness/anomaly/job.cc                            no file
harness/anomaly/planted_flows.cc                  no file
harness/bench/waits.cc                            the memory of a BPF map
harness/bench/workload.cc                         no file
harness/cli/demo/live_run.cc                      an event of the kernel's
harness/conformance/adapters/perfring.cc          the ring that conform gives it, which is sealed
harness/conformance/supervisor/backend.cc         a memfd that is sealed (kernel::give_length)
harness/conformance/supervisor/live_backend.cc    an event of the kernel's
harness/differential/live_reference.cc            an event of the kernel's
harness/kernel/ring_memory.h                      a memfd that is sealed
harness/live/emitter.cc                           the memory of a BPF map
harness/live/faulting.cc                          no file
harness/live/generator.cc                         the memory of a BPF map
harness/program/fiber.cc                          no file
harness/stress/processes.h                        no file
lib/perfring/os/mapping.h                         what the others give it
lib/perfring/output_event.cc                      an event of the kernel's
lib/perfring/sampler/sampler.cc                   an event of the kernel's
ALLOWED
cut -d ' ' -f 1 "$folder/allowed" >"$folder/expected"

# Files of tests are exempt: only tests use their mappings.
find lib harness fuzz proptests -name '*.cc' -o -name '*.h' | grep -vE '_test\.cc$|/testing[/.]|_testing\.(h|cc)$|/uring\.h$' |
  sort >"$folder/sources"
while read -r file; do
  sed 's,//.*,,' "$file" | grep -qE '\bmmap(64)?\(([^2]|$)|\bMapping::map' && echo "$file"
done <"$folder/sources" >"$folder/found"
diff "$folder/expected" "$folder/found" >"$folder/differs" ||
  fail "mapped in another file (>), or no longer (<): $(cat "$folder/differs")"
[ "$(wc -l <"$folder/sources")" -ge 200 ] || fail "only $(wc -l <"$folder/sources") files were checked"
finish "$(wc -l <"$folder/found") files map something, and nothing that another process can cut off"
