#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "harness/differential/reference_kernel.h"
#include "harness/rig/simulated_kernel.h"
#include "harness/script/script.h"

namespace perfring::differential {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format(" {:02x}", static_cast<unsigned>(byte));
  return text;
}

std::string values(const rig::Observed& observed) {
  return fmt::format("result {}, data_head {}, data_tail {}, lost {} and {}", observed.result,
                     observed.head, observed.tail, observed.lost[0], observed.lost[1]);
}

// Returns the name of the first difference. Precondition: there is one.
const char* first_of(const rig::Observed& expected, const rig::Observed& actual) {
  if (actual.result != expected.result) return "result";
  if (actual.head != expected.head) return "data_head";
  return actual.tail != expected.tail ? "data_tail" : "LOST count";
}

// Returns true if the sample's size exceeds the 16 bits of header.size. Each field other than RAW
// has 8 bytes. The raw data follow their own size and end on a multiple of 8.
bool is_truncated(const script::Settings& settings, std::uint64_t payload) {
  const auto fields =
      static_cast<unsigned>(std::popcount(settings.sample_type & ~std::uint64_t{PERF_SAMPLE_RAW}));
  const std::uint64_t raw = (sizeof(std::uint32_t) + payload + 7) / 8 * 8;
  return sizeof(perf_event_header) + 8 * fields + raw > std::numeric_limits<std::uint16_t>::max();
}

void count(Compared& compared, const script::Settings& settings, const script::Step& step,
           std::int64_t result) {
  ++compared.steps;
  if (step.action == script::Action::Output) {
    ++(result == 0 ? compared.accepted : compared.refused);
    if (result == 0 && is_truncated(settings, step.number)) ++compared.truncated;
  }
  if (step.action == script::Action::Poll || step.action == script::Action::Epoll) {
    ++compared.waits;
    if (result != 0) ++compared.ready;
  }
}

// Compares word by word: on s390x memcmp() is one instruction, which qemu emulates byte by byte.
bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  std::size_t i = 0;
  for (; i + 8 <= a.size(); i += 8) {
    std::uint64_t in_a;
    std::uint64_t in_b;
    std::memcpy(&in_a, &a[i], sizeof(in_a));
    std::memcpy(&in_b, &b[i], sizeof(in_b));
    if (in_a != in_b) return false;
  }
  return std::equal(a.begin() + static_cast<std::ptrdiff_t>(i), a.end(),
                    b.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace

std::optional<std::string> first_difference(std::span<const std::byte> expected,
                                            std::span<const std::byte> actual) {
  if (expected.size() != actual.size()) return "the rings' sizes differ";
  if (equal(expected, actual)) return std::nullopt;
  const auto at = static_cast<std::size_t>(
      std::mismatch(expected.begin(), expected.end(), actual.begin()).first - expected.begin());
  const std::size_t line = at / 8 * 8;
  return fmt::format("the ring's byte {}: from {} on, the kernel has{}, the simulated kernel{}", at,
                     line, hex(expected.subspan(line, 8)), hex(actual.subspan(line, 8)));
}

std::optional<Difference> compare(const script::Script& script, ReferenceKernel& reference,
                                  Compared& compared, const std::function<bool()>& stop) {
  rig::SimulatedKernel simulated{script.settings, reference.identity(), reference.page_shift()};
  return compare(script, reference, simulated, compared, stop);
}

std::optional<Difference> compare(const script::Script& script, ReferenceKernel& reference,
                                  rig::SimulatedKernel& simulated, Compared& compared,
                                  const std::function<bool()>& stop) {
  ++compared.scripts;
  for (std::size_t i = 0; i < script.steps.size() && !(stop && stop()); ++i) {
    const ReferenceStep expected = reference.run(script.steps[i]);
    const rig::Observed actual = simulated.run(script.steps[i], expected.time);
    count(compared, script.settings, script.steps[i], expected.observed.result);
    if (actual != expected.observed) {
      return Difference{i + 1, first_of(expected.observed, actual),
                        fmt::format("the kernel: {}; the simulated kernel: {}",
                                    values(expected.observed), values(actual))};
    }
    if (auto what = reference.ring_difference(simulated.ring().data())) {
      return Difference{i + 1, "bytes", *std::move(what)};
    }
  }
  return std::nullopt;
}

}  // namespace perfring::differential
