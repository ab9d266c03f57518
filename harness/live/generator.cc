#include "harness/live/generator.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "harness/live/bpf/generator_object.h"
#include "harness/live/bpf_object.h"
#include "perfring/os/syscalls.h"

namespace perfring::live {
namespace {

static_assert(sizeof(generator_state) % 8 == 0, "the kernel rounds array values up to 8 bytes");

// Loads a value of a map to which the BPF program may be writing.
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
  return {};  // the counts include bpf_loop()'s
}

OutputCounts Generator::counts(std::uint32_t cpu) const {
  if (cpu >= states_.bytes().size() / sizeof(generator_state)) return {};
  const auto& state = reinterpret_cast<const generator_state*>(states_.bytes().data())[cpu];
  return {load_relaxed(state.outputs), load_relaxed(state.accepted), load_relaxed(state.full),
          load_relaxed(state.failed), load_relaxed(state.last_error)};
}

namespace {

constexpr std::size_t kSampleOverhead = 12;  // header and raw size
constexpr std::size_t kLostSize = 24;

// Returns the raw size of a sample with `payload` bytes: the kernel adds padding.
std::size_t raw_size(std::size_t payload) {
  return (payload + 4 + 7) / 8 * 8 - 4;
}

}  // namespace

Audit::Audit(std::uint32_t cpu, PayloadRange payload)
    : cpu_{cpu}, payload_{payload}, pattern_{generator_pattern()} {}

void Audit::check(const PerfEvent& event) {
  if (const auto* sample = std::get_if<Sample>(&event)) {
    check_sample(*sample);
  } else if (const auto* lost = std::get_if<Lost>(&event)) {
    counts_.lost += lost->count;
    counts_.bytes += kLostSize;
    sequence_ += lost->count;
  } else {
    const auto& malformed = std::get<Malformed>(event);
    counts_.malformed += 1;
    counts_.bytes += malformed.size();
  }
}

void Audit::check_sample(const Sample& sample) {
  counts_.delivered += 1;
  counts_.bytes += kSampleOverhead + sample.size();
  const auto record = sample.as<generator_record>();
  if (!record) {
    counts_.corrupt += 1;
    return;
  }
  const auto ahead = static_cast<std::int32_t>(record->sequence - static_cast<__u32>(sequence_));
  if (ahead != 0) {
    counts_.out_of_order += 1;
    sequence_ += static_cast<std::uint64_t>(std::int64_t{ahead});
  }
  if (!is_intact(sample, *record)) counts_.corrupt += 1;
  sequence_ += 1;
}

bool Audit::is_intact(const Sample& sample, const generator_record& record) const {
  const std::uint32_t payload = generator_payload_size(sequence_, cpu_, payload_.min, payload_.max);
  return record.cpu == static_cast<__u16>(cpu_) &&
         record.checksum == generator_checksum(sequence_, cpu_, payload) &&
         sample.size() == raw_size(payload) &&
         body_matches(sample, payload, pattern_.data() + generator_window(sequence_));
}

// Compares bytes 8 to `length` of the sample and of `body`.
bool Audit::body_matches(const Sample& sample, std::size_t length,
                         const unsigned char* body) const {
  // `bytes` begin at offset `at` of the payload.
  const auto matches = [&](Bytes bytes, std::size_t at) {
    const std::size_t from = std::max(at, sizeof(generator_record));
    const std::size_t to = std::min(at + bytes.size(), length);
    return from >= to || std::memcmp(bytes.data() + (from - at), body + from, to - from) == 0;
  };
  return matches(sample.head, 0) && matches(sample.tail, sample.head.size());
}

}  // namespace perfring::live
