#include "harness/bench/paced_writer.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>

#include "harness/bench/beat.h"
#include "harness/live/bpf_object.h"
#include "perfring/os/syscalls.h"

namespace perfring::bench {

std::expected<PacedWriter, std::string> PacedWriter::load() {
  auto object = live::BpfObject::open(live::beat(), "beat");
  if (!object) return std::unexpected(object.error());
  const auto cpus = static_cast<std::uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
  if (auto sized = object->set_max_entries("events", cpus); !sized) {
    return std::unexpected(sized.error());
  }
  if (auto loaded = object->load(); !loaded) return std::unexpected(loaded.error());
  auto program = object->program("beat");
  auto events = object->map("events");
  auto counts = object->map("counts");
  for (const auto* part : {&program, &events, &counts}) {
    if (!*part) return std::unexpected("the writer's " + part->error());
  }
  auto mapped = os::Mapping::map(counts->get(), os::page_size());
  if (!mapped) return std::unexpected("mmap of the writer's counts: " + mapped.error().message());
  return PacedWriter{*std::move(program), *std::move(events), *std::move(mapped)};
}

std::expected<void, std::string> PacedWriter::write(std::uint32_t cpu, std::uint64_t per_second,
                                                    const std::function<bool()>& done) {
  constexpr std::uint64_t kPicoseconds = 1'000'000'000'000;
  const std::array<std::uint64_t, BEAT_ARGUMENTS> arguments{
      std::max<std::uint64_t>(per_second / 1000, 1), kPicoseconds / per_second};
  while (!done()) {
    const auto run = live::test_run(program_.get(), cpu, arguments);
    if (!run) return std::unexpected("running the BPF program: " + run.error().message());
    if (*run != 0) return std::unexpected("the BPF program found no counts");
  }
  return {};
}

beat_counts PacedWriter::counts() const {
  const auto& now = *reinterpret_cast<const beat_counts*>(counts_.bytes().data());
  const auto load = [](const __u64& each) { return __atomic_load_n(&each, __ATOMIC_RELAXED); };
  return {load(now.accepted), load(now.refused), load(now.output_ns)};
}

}  // namespace perfring::bench
