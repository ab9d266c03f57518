// libbpf loads and attaches execs.bpf.c, without a skeleton; perfring drains its events until three
// programs have been started.   usage: with_libbpf execs.bpf.o
#include <bpf/libbpf.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <variant>

#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/ring_set.h"
using namespace perfring;

struct Exec {  // as in execs.bpf.c
  std::uint32_t pid;
  char command[16];
};
int main(int argc, char** argv) {
  if (argc != 2) return std::puts("usage: with_libbpf execs.bpf.o"), 2;
  bpf_object* const object = bpf_object__open_file(argv[1], nullptr);
  if (object == nullptr || bpf_object__load(object) != 0) return std::puts("not loaded"), 1;
  auto array = PerfEventArray::from_fd(bpf_object__find_map_fd_by_name(object, "events"));
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  auto set = RingSet::open(*array);
  if (!set) return std::puts(set.error().explain().c_str()), 1;
  bpf_link* const link = bpf_program__attach(bpf_object__find_program_by_name(object, "on_exec"));
  if (link == nullptr) return std::puts("not attached"), 1;

  int execs = 0;
  const auto print = [&](std::uint32_t, const PerfEvent& event) {
    const auto* const sample = std::get_if<Sample>(&event);
    const auto exec = sample != nullptr ? sample->as<Exec>() : std::nullopt;
    if (exec) std::printf("pid %u: %.16s\n", exec->pid, exec->command);
    execs += exec.has_value();
  };
  while (execs < 3) {
    set->wait();
    set->drain(print);
  }
  bpf_link__destroy(link);
  bpf_object__close(object);
}
