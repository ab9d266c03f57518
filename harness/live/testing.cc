#include "harness/live/testing.h"

#include <algorithm>
#include <cstring>
#include <ostream>
#include <variant>

#include "harness/live/require_live_kernel.h"
#include "perfring/os/cpus.h"

namespace perfring::live {
namespace {

// `event` is a Sample or a Malformed.
Seen slices(Seen::Kind kind, const auto& event) {
  Seen seen{.kind = kind, .bytes{}, .head = event.head, .tail = event.tail};
  seen.bytes.resize(event.size());
  event.copy_to(seen.bytes);
  return seen;
}

Seen seen_of(const Sample& sample) {
  return slices(Seen::Kind::Sample, sample);
}
Seen seen_of(const Lost& lost) {
  return {.kind = Seen::Kind::Lost, .bytes{}, .count = lost.count, .head{}, .tail{}};
}
Seen seen_of(const Malformed& malformed) {
  Seen seen = slices(Seen::Kind::Malformed, malformed);
  seen.defect = malformed.defect;
  return seen;
}

}  // namespace

std::uint64_t Seen::number() const {
  std::uint64_t number = 0;
  if (bytes.size() < sizeof(number)) throw std::logic_error("a record too short for its number");
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

Seen see(const PerfEvent& event) {
  return std::visit([](const auto& e) { return seen_of(e); }, event);
}

void PrintTo(const Seen& seen, std::ostream* out) {
  switch (seen.kind) {
    case Seen::Kind::Sample:
      *out << "Sample of " << seen.head.size() << " + " << seen.tail.size() << " bytes";
      return;
    case Seen::Kind::Lost:
      *out << "Lost " << seen.count;
      return;
    case Seen::Kind::Malformed:
      *out << to_string(seen.defect) << " of " << seen.bytes.size() << " bytes";
      return;
  }
}

RingMemory::RingMemory(const Seen& first, std::size_t page_count)
    : page{*reinterpret_cast<const perf_event_mmap_page*>(first.head.data() - 12 -
                                                          os::page_size())},
      data{first.head.data() - 12, page_count * os::page_size()} {}

void LiveTest::SetUp() {
  if (!require_live_kernel()) return;
  cpus_ = os::online_cpus().value();  // why_no_live_kernel() had them
  emitter_.emplace(must(Emitter::create()));
  array_.emplace(must(PerfEventArray::from_fd(emitter().map_fd())));
}

void LiveTest::fill_payload(std::size_t size, unsigned seed) {
  const auto payload = emitter().payload().first(size);
  for (std::size_t i = 0; i < size; ++i) {
    payload[i] = static_cast<std::byte>((i * 31 + i / 251 + seed * 101 + 1) & 0xff);
  }
}

testing::AssertionResult LiveTest::is_payload(const Seen& seen, std::size_t size) {
  if (!seen.is_sample()) return testing::AssertionFailure() << testing::PrintToString(seen);
  if (seen.bytes.size() != raw_size(size)) {
    return testing::AssertionFailure()
           << "raw size " << seen.bytes.size() << ", not " << raw_size(size);
  }
  const auto sent = emitter().payload().first(size);
  const auto differs = std::mismatch(sent.begin(), sent.end(), seen.bytes.begin()).first;
  if (differs == sent.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << differs - sent.begin() << " differs";
}

}  // namespace perfring::live
