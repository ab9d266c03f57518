#include "harness/live/generator.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "harness/live/bpf/generator_object.h"
#include "harness/live/bpf_object.h"
#include "perfring/os/syscalls.h"

namespace perfring::live {
namespace {

static_assert(sizeof(generator_state) % 8 == 0, "the kernel rounds array values up to 8 bytes");

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

std::expected<Generator, std::string> Generator::load(PayloadRange payload) {
  const auto cpus = static_cast<std::uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
  auto object = BpfObject::open(generator_object(), "generator");
  if (!object) return std::unexpected(object.error());
  if (auto sized = object->set_max_entries("states", cpus); !sized) {
    return std::unexpected(sized.error());
  }
  if (auto loaded = object->load(); !loaded) return std::unexpected(loaded.error());
  auto program = object->program("generate");
  auto events = object->map("events");
  auto states = object->map("states");
  for (const auto* part : {&program, &events, &states}) {
    if (!*part) return std::unexpected("the generator's " + part->error());
  }

  const std::size_t page = os::page_size();
  const std::size_t length = (sizeof(generator_state) * cpus + page - 1) / page * page;
  auto mapped = os::Mapping::map(states->get(), length);
  if (!mapped) {
    return std::unexpected("mmap of the generator's states: " + mapped.error().message());
  }
  const std::vector<unsigned char> pattern = generator_pattern();
  auto* state = reinterpret_cast<generator_state*>(mapped->bytes().data());
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
    std::memcpy(state[cpu].pattern, pattern.data(), pattern.size());
  }
  return Generator{payload, *std::move(program), *std::move(events), *std::move(mapped)};
}

std::expected<void, std::error_code> Generator::run(std::uint32_t cpu, std::uint32_t batch,
                                                    IfFull if_full) {
  const std::array<std::uint64_t, 4> arguments{batch, if_full == IfFull::Stop ? 1U : 0U,
                                               payload_.min, payload_.max};
  const auto loops = test_run(program_.get(), cpu, arguments);
  if (!loops) return std::unexpected(loops.error());
  if (*loops < 0) return std::unexpected(std::error_code(-*loops, std::generic_category()));
  return {};  // bpf_loop's count is in the counts, too
}

OutputCounts Generator::counts(std::uint32_t cpu) const {
  if (cpu >= states_.bytes().size() / sizeof(generator_state)) return {};
  const auto& state = reinterpret_cast<const generator_state*>(states_.bytes().data())[cpu];
  return {load_relaxed(state.outputs), load_relaxed(state.written), load_relaxed(state.full),
          load_relaxed(state.failed), load_relaxed(state.last_error)};
}

}  // namespace perfring::live
