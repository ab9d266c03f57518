#include "harness/differential/trace.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perfring::differential {
namespace {

constexpr std::size_t kBytesMax = 48;  // kept of a change

// FNV-1a, 8 bytes at a time.
std::uint64_t digest_of(std::span<const std::byte> ring) {
  std::uint64_t digest = 0xcbf2'9ce4'8422'2325;
  for (std::size_t i = 0; i < ring.size(); i += sizeof(digest)) {
    std::uint64_t word = 0;
    std::memcpy(&word, &ring[i], sizeof(word));
    digest = (digest ^ word) * 0x0000'0100'0000'01b3;
    digest ^= digest >> 32;
  }
  return digest;
}

Change change_of(std::span<const std::byte> before, std::span<const std::byte> after) {
  const auto first = std::ranges::mismatch(before, after).in1 - before.begin();
  const auto begin = static_cast<std::size_t>(first);
  std::size_t end = after.size();
  while (end > begin && before[end - 1] == after[end - 1]) --end;
  if (end == begin) return {};
  if (end - begin > kBytesMax) return {.bytes{}, .digest = digest_of(after)};
  const auto changed = after.subspan(begin, end - begin);
  return {.offset = begin, .bytes{changed.begin(), changed.end()}, .digest{}};
}

}  // namespace

Trace record(const std::string& name, const script::Script& script, ReferenceKernel& kernel,
             std::span<const std::byte> ring) {
  Trace trace{.name = name,
              .script = script,
              .identity = kernel.identity(),
              .page_size = std::uint64_t{1} << kernel.page_shift(),
              .little_endian = std::endian::native == std::endian::little,
              .steps{}};
  std::vector<std::byte> before{ring.begin(), ring.end()};
  for (const script::Step& step : script.steps) {
    const ReferenceStep seen = kernel.run(step);
    trace.steps.push_back({seen, change_of(before, ring)});
    before.assign(ring.begin(), ring.end());
  }
  return trace;
}

RecordedReference::RecordedReference(const Trace& trace)
    : trace_{trace},
      ring_(static_cast<std::size_t>(trace.script.settings.pages * trace.page_size)) {}

unsigned RecordedReference::page_shift() const {
  return static_cast<unsigned>(std::countr_zero(trace_.page_size));
}

ReferenceStep RecordedReference::run(const script::Step&) {
  const Change& change = trace_.steps.at(next_).change;
  std::ranges::copy(change.bytes, ring_.begin() + static_cast<std::ptrdiff_t>(change.offset));
  return trace_.steps[next_++].step;
}

std::optional<std::string> RecordedReference::ring_difference(std::span<const std::byte> ring) {
  const auto digest = trace_.steps.at(next_ - 1).change.digest;
  if (!digest) return first_difference(ring_, ring);
  if (*digest != digest_of(ring)) return "the ring's bytes: their digest is another";
  ring_.assign(ring.begin(), ring.end());
  return std::nullopt;
}

}  // namespace perfring::differential
