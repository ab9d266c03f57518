#include "harness/live/generator.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "harness/live/bpf/generator_object.h"
#include "perfring/os/syscalls.h"

namespace perfring::live {
namespace {

static_assert(sizeof(generator_state) % 8 == 0, "the kernel rounds array values up to 8 bytes");

// Constants of the program, in the order of their declaration there.
struct ReadOnlyData {
  std::uint32_t payload_min;
  std::uint32_t payload_max;
};

void configure(bpf_object* object, PayloadRange payload, std::uint32_t cpus) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    const std::string name = bpf_map__name(map);
    if (name == "states") bpf_map__set_max_entries(map, cpus);
    if (name.ends_with(".rodata")) {
      const ReadOnlyData data{payload.min, payload.max};
      bpf_map__set_initial_value(map, &data, sizeof(data));
    }
  }
}

// A value of a map that the BPF program may be writing.
template <class T>
T load_relaxed(const T& value) {
  return __atomic_load_n(&value, __ATOMIC_RELAXED);
}

}  // namespace

std::vector<unsigned char> generator_pattern() {
  std::vector<unsigned char> pattern(GENERATOR_PATTERN_SIZE);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    pattern[i] = static_cast<unsigned char>(generator_mix(i + 1) >> 11);
  }
  return pattern;
}

std::expected<Generator, LiveError> Generator::load(PayloadRange payload) {
  const auto cpus = static_cast<std::uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
  auto object = BpfObject::load(generator_object(), "generator",
                                [&](bpf_object* opened) { configure(opened, payload, cpus); });
  if (!object) return std::unexpected(object.error());

  const std::size_t page = os::page_size();
  const std::size_t length = (sizeof(generator_state) * cpus + page - 1) / page * page;
  auto states = os::Mapping::map(object->map_fd("states"), length);
  if (!states) {
    return std::unexpected(LiveError{"mmap of the generator's states: " + states.error().message(),
                                     /*missing=*/false});
  }
  const std::vector<unsigned char> pattern = generator_pattern();
  auto* state = reinterpret_cast<generator_state*>(states->bytes().data());
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
    std::memcpy(state[cpu].pattern, pattern.data(), pattern.size());
  }
  return Generator{*std::move(object), *std::move(states)};
}

std::expected<void, std::error_code> Generator::run(std::uint32_t cpu, std::uint32_t batch,
                                                    IfFull if_full) {
  const std::array<std::uint64_t, 2> arguments{batch, if_full == IfFull::Stop ? 1U : 0U};
  const auto loops = test_run(object_.program_fd("generate"), cpu, arguments);
  if (!loops) return std::unexpected(loops.error());
  if (static_cast<std::int32_t>(*loops) < 0) {  // bpf_loop's own error
    return std::unexpected(
        std::error_code(-static_cast<std::int32_t>(*loops), std::generic_category()));
  }
  return {};
}

const generator_state* Generator::state(std::uint32_t cpu) const {
  const std::size_t possible = states_.bytes().size() / sizeof(generator_state);
  if (cpu >= possible) return nullptr;
  return reinterpret_cast<const generator_state*>(states_.bytes().data()) + cpu;
}

OutputCounts Generator::counts(std::uint32_t cpu) const {
  const generator_state* counted = state(cpu);
  if (counted == nullptr) return {};
  return {load_relaxed(counted->outputs), load_relaxed(counted->written),
          load_relaxed(counted->full), load_relaxed(counted->failed),
          load_relaxed(counted->last_error)};
}

}  // namespace perfring::live
