#include "harness/oracle/drain_watch.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "harness/oracle/ledger.h"

namespace perfring::oracle {
namespace {

constexpr std::uint64_t kHeaderSize = 8;
constexpr std::uint64_t kPayloadAt = 12;
constexpr std::uint64_t kRecordMax = 65528;  // the largest multiple of 8 in header.size

}  // namespace

std::uint64_t DrainWatch::data_tail() const {
  return __atomic_load_n(&page_.data_tail, __ATOMIC_RELAXED);
}

void DrainWatch::begin_drain() {
  const std::uint64_t tail = data_tail();
  if (tail != tail_) {
    violate(Invariant::tail_honest,
            fmt::format("data_tail went from {} to {} outside any drain", tail_, tail));
  }
  tail_ = tail;
  events_ = 0;
  at_least_ = 0;
  in_drain_ = true;
  over_ = false;
  impossible_ = false;
}

void DrainWatch::check_event(const PerfEvent& event) {
  if (!in_drain_) violate(Invariant::once, "an event was delivered outside any drain");
  if (over_)
    violate(Invariant::bounded, "an event was delivered after the one that ended the drain");
  if (++events_ > data_.size() / kHeaderSize) {
    violate(Invariant::bounded,
            fmt::format("{} events in one drain of a ring of {} bytes", events_, data_.size()));
  }
  if (const std::uint64_t tail = data_tail(); tail != tail_) {
    violate(Invariant::tail_honest,
            fmt::format("data_tail went from {} to {} while the drain's event {} was still to be "
                        "delivered",
                        tail_, tail, events_));
  }
  at_least_ += size_of(event);
}

std::uint64_t DrainWatch::size_of(const PerfEvent& event) {
  if (std::holds_alternative<Lost>(event)) return kLostSize;
  if (const auto* bad = std::get_if<Malformed>(&event)) {
    malformed(*bad);
    return bad->size();
  }
  const auto& sample = std::get<Sample>(event);
  in_ring(sample.head, sample.tail);
  const std::uint64_t size = kPayloadAt + sample.size();
  if (size > kRecordMax) {
    violate(Invariant::in_ring,
            fmt::format("a sample of {} bytes, which no record can hold", size - kPayloadAt));
  }
  return size;
}

void DrainWatch::malformed(const Malformed& malformed) {
  in_ring(malformed.head, malformed.tail);
  const std::uint64_t size = malformed.size();
  const bool ends = malformed.defect == Defect::BadSize || malformed.defect == Defect::BadPositions;
  const std::uint64_t grain = malformed.defect == Defect::BadPositions ? 1 : kHeaderSize;
  const bool fits = size != 0 && size % grain == 0 && (ends || size <= kRecordMax);
  if (!fits || (malformed.defect == Defect::BadPositions && events_ != 1)) {
    violate(Invariant::bounded, fmt::format("{} of {} bytes, as event {} of a drain",
                                            to_string(malformed.defect), size, events_));
  }
  over_ = ends;
  impossible_ = malformed.defect == Defect::BadPositions;
}

void DrainWatch::in_ring(Bytes head, Bytes tail) {
  check_read(head.data(), head.size());
  check_read(tail.data(), tail.size());
  const bool joined = tail.empty() || (tail.data() == data_.data() &&
                                       head.data() + head.size() == data_.data() + data_.size());
  if (!joined || head.size() + tail.size() > data_.size()) {
    violate(Invariant::in_ring,
            fmt::format("slices of {} and {} bytes that are not contiguous in the ring",
                        head.size(), tail.size()));
  }
}

void DrainWatch::outside(const std::byte* address, std::size_t size) {
  violate(Invariant::in_ring, fmt::format("{} bytes at offset {} of a ring of {}", size,
                                          reinterpret_cast<std::intptr_t>(address) -
                                              reinterpret_cast<std::intptr_t>(data_.data()),
                                          data_.size()));
}

void DrainWatch::end_drain(std::optional<std::uint32_t> available) {
  in_drain_ = false;
  const std::uint64_t tail = data_tail();
  moved_ = tail - std::exchange(tail_, tail);
  const std::uint64_t most = available     ? *available
                             : impossible_ ? std::uint64_t{0xffff'ffff}
                                           : data_.size();
  const bool whole = impossible_ || moved_ % kHeaderSize == 0;
  if (moved_ < at_least_ || moved_ > most || !whole) {
    violate(Invariant::tail_honest, fmt::format("data_tail moved by {} in a drain of {} events, "
                                                "which take at least {} and at most {} bytes",
                                                moved_, events_, at_least_, most));
  }
  if (events_ == 0 && moved_ != 0) {
    violate(Invariant::tail_honest,
            fmt::format("data_tail moved by {} though nothing was delivered", moved_));
  }
}

}  // namespace perfring::oracle
