// The cost of typed records: a ring of IP|TID|TIME|CPU|PERIOD samples, walked three ways in turn.
//   chase    from header to header, nothing else: a floor
//   by hand  the same five fields, read at their offsets by a struct
//   decoded  the same, by record::decode() and its accessors
// Prints ns for each record, and the two ratios; each is the median of many rounds.
// usage: records [--json -]

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "perfring/record/decode.h"

namespace perfring::bench {
namespace {

constexpr std::uint64_t kFields =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;

struct ByHand {
  perf_event_header header;
  std::uint64_t ip;
  std::uint32_t pid, tid;
  std::uint64_t time;
  std::uint32_t cpu, res;
  std::uint64_t period;
};

std::vector<std::byte> samples(std::size_t count) {
  std::vector<std::byte> bytes(count * sizeof(ByHand));
  for (std::size_t i = 0; i < count; ++i) {
    const ByHand one{
        {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(ByHand)}, i, 1, 2, 3 * i, 1, 0, 1};
    std::memcpy(&bytes[i * sizeof one], &one, sizeof one);
  }
  return bytes;
}

template <class Each>
std::uint64_t walk(Bytes bytes, const Each& each) {
  std::uint64_t sum = 0;
  while (!bytes.empty()) {
    const auto header = record::internal::load_once<std::uint64_t>(bytes.data());
    const std::size_t size = std::bit_cast<perf_event_header>(header).size;
    sum += each(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  return sum;
}

std::uint64_t chase(Bytes bytes) {
  return walk(bytes, [](Bytes one) { return one.size(); });
}
std::uint64_t by_hand(Bytes bytes) {
  return walk(bytes, [](Bytes one) {
    ByHand sample;
    std::memcpy(&sample, one.data(), sizeof sample);
    return sample.ip + sample.tid + sample.time + sample.cpu + sample.period;
  });
}
std::uint64_t decoded(Bytes bytes, const record::Layout& layout) {
  return walk(bytes, [&](Bytes one) -> std::uint64_t {
    const record::Any any = record::decode(one, layout);
    const auto* const sample = std::get_if<record::Sample>(&any);
    if (sample == nullptr) return any.index();
    return *sample->ip() + *sample->tid() + *sample->time() + *sample->cpu() + *sample->period();
  });
}

int run(bool is_json) {
  constexpr std::size_t kCount = 1024;
  constexpr std::size_t kRounds = 2001;
  const std::vector<std::byte> bytes = samples(kCount);
  perf_event_attr attr{};
  attr.sample_type = kFields;
  const record::Layout layout{attr};
  if (by_hand(bytes) != decoded(bytes, layout)) return fmt::print("they differ\n"), 1;
  std::array<std::vector<double>, 3> times;
  volatile std::uint64_t kept = 0;
  const auto timed = [&](std::size_t which, const auto& body) {
    const auto begin = std::chrono::steady_clock::now();
    kept = body();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    times[which].push_back(took.count() / kCount);
  };
  for (std::size_t round = 0; round < kRounds; ++round) {
    timed(0, [&] { return chase(bytes); });
    timed(1, [&] { return by_hand(bytes); });
    timed(2, [&] { return decoded(bytes, layout); });
  }
  std::array<double, 3> median{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::ranges::nth_element(times[i], times[i].begin() + kRounds / 2);
    median[i] = times[i][kRounds / 2];
  }
  const double by_chase = median[2] / median[0];
  const double by_fields = median[2] / median[1];
  if (is_json) {  // as ci/bench reads it
    fmt::print(
        "{{\"benchmarks\": [{{\"name\": \"records\", \"decoded/chase\": {:.3f}, "
        "\"decoded/by hand\": {:.3f}}}]}}\n",
        by_chase, by_fields);
    return 0;
  }
  fmt::print("ns for each record: chase {:.2f}, by hand {:.2f}, decoded {:.2f}\n", median[0],
             median[1], median[2]);
  fmt::print("decoded / chase {:.2f} (aim: at most 3), decoded / by hand {:.2f} (aim: at most 2)\n",
             by_chase, by_fields);
  return 0;
}

}  // namespace
}  // namespace perfring::bench

int main(int argc, char** argv) {
  const std::span<char*> all{argv, static_cast<std::size_t>(argc)};
  const bool is_json =
      all.size() == 3 && std::string_view{all[1]} == "--json" && std::string_view{all[2]} == "-";
  if (all.size() > 1 && !is_json) return std::fputs("usage: records [--json -]\n", stderr), 2;
  return perfring::bench::run(is_json);
}
