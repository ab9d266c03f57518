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
DeliveredEvent slices(DeliveredEvent::Kind kind, const auto& event) {
  DeliveredEvent seen{.kind = kind, .bytes{}, .head = event.head, .tail = event.tail};
  seen.bytes.resize(event.size());
  event.copy_to(seen.bytes);
  return seen;
}

DeliveredEvent seen_of(const Sample& sample) {
  return slices(DeliveredEvent::Kind::Sample, sample);
}
DeliveredEvent seen_of(const Lost& lost) {
  return {.kind = DeliveredEvent::Kind::Lost, .bytes{}, .count = lost.count, .head{}, .tail{}};
}
DeliveredEvent seen_of(const Malformed& malformed) {
  DeliveredEvent seen = slices(DeliveredEvent::Kind::Malformed, malformed);
  seen.defect = malformed.defect;
  return seen;
}

}  // namespace

std::uint64_t DeliveredEvent::number() const {
  std::uint64_t number = 0;
  if (bytes.size() < sizeof(number)) throw std::logic_error("a record too short for its number");
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

DeliveredEvent see(const PerfEvent& event) {
  return std::visit([](const auto& e) { return seen_of(e); }, event);
}

void PrintTo(const DeliveredEvent& seen, std::ostream* out) {
  switch (seen.kind) {
    case DeliveredEvent::Kind::Sample:
      *out << "Sample of " << seen.head.size() << " + " << seen.tail.size() << " bytes";
      return;
    case DeliveredEvent::Kind::Lost:
      *out << "Lost " << seen.count;
      return;
    case DeliveredEvent::Kind::Malformed:
      *out << to_string(seen.defect) << " of " << seen.bytes.size() << " bytes";
      return;
  }
}

MappedRing::MappedRing(const DeliveredEvent& first, std::size_t page_count)
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

testing::AssertionResult LiveTest::is_payload(const DeliveredEvent& seen, std::size_t size) {
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
