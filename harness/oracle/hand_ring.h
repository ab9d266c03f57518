#ifndef HARNESS_ORACLE_HAND_RING_H_
#define HARNESS_ORACLE_HAND_RING_H_

// For the oracle's own tests: a ring with a hand-made history. write() calls the ledger as the
// kernel's tracepoints would; sample_at() is the event that a consumer would deliver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/oracle/checker.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/payload.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {

// Enters an accepted attempt into a ledger that has no ring.
inline void accept(Ledger& ledger, std::uint32_t length, std::uint64_t position, std::uint64_t size,
                   std::uint64_t lost = 0, std::uint64_t tail = 0) {
  ledger.begin_attempt({0, 0, length});
  ledger.note_reservation(position, size, tail);
  if (lost != 0) ledger.note_report(lost);
  ledger.end_attempt(0);
}

// Enters an attempt that is refused because the ring is paused.
inline void refuse(Ledger& ledger) {
  ledger.begin_attempt({0, 0, 4});
  ledger.note_refusal(true);
  ledger.end_attempt(-ENOSPC);
}

template <std::size_t Size>
struct HandRingOf {
  static constexpr std::size_t kSize = Size;

  perf_event_mmap_page page{};
  alignas(8) std::array<std::byte, kSize> data{};
  Ledger ledger{kSize, Ledger::Keep::Records};
  Checker checker{page, data, ledger};
  std::uint64_t head = 0;
  std::uint64_t next_sequence = 0;

  // Returns the slices for `size` bytes of the ring from `position` on.
  Sample slices(std::uint64_t position, std::size_t size) {
    const std::size_t from = position % kSize;
    const std::size_t before_end = std::min(size, kSize - from);
    return {Bytes{data}.subspan(from, before_end), Bytes{data}.first(size - before_end)};
  }

  // Returns the sample that a consumer delivers for the record at `position`.
  Sample sample_at(std::uint64_t position, std::uint32_t length) {
    return slices(position + 12, static_cast<std::size_t>(raw_size(length)));
  }

  // Writes a record with a payload of `length` bytes, with a LOST in front of it if `lost` is not
  // 0.
  Payload write(std::uint32_t length, std::uint64_t lost = 0) {
    const Payload payload{next_sequence++, 0, length};
    const std::uint64_t size = record_size(length) % 65536;
    ledger.begin_attempt(payload);
    ledger.note_reservation(head, size + (lost != 0 ? 24 : 0), page.data_tail);
    if (lost != 0) ledger.note_report(lost);
    if (lost != 0) head += 24;
    std::vector<std::byte> bytes(length);
    fill(bytes, payload);
    for (std::size_t i = 0; i < length; ++i) data[(head + 12 + i) % kSize] = bytes[i];
    head += size;
    ledger.end_attempt(0);
    return payload;
  }

  void refuse() {
    ledger.begin_attempt({next_sequence++, 0, 16});
    ledger.note_refusal(true);
    ledger.end_attempt(-ENOSPC);
  }

  // Runs a drain of these events that leaves data_tail at `tail`.
  template <class... Event>
  void drain_to(std::uint64_t tail, const Event&... events) {
    checker.begin_drain();
    (checker.check_delivery(PerfEvent{events}), ...);
    page.data_tail = tail;
    checker.end_drain();
  }
};

using HandRing = HandRingOf<4096>;

inline Ledger ring_of_4096(std::uint64_t start = 0, unsigned bits = 64) {
  return Ledger{4096, Ledger::Keep::Records, start, bits};
}

// Returns the violated invariant, or `awake`, which no ledger judges, if there is no violation.
inline Invariant violated(const Ledger& ledger) {
  return ledger.violation() ? ledger.violation()->invariant : Invariant::awake;
}

// For tests of the Checker: a ring, and expectations about the violation found at the end.
class CheckerTest : public ::testing::Test {
 protected:
  void expect(Invariant invariant, const std::string& message = "") {
    ring_.checker.settle();
    ASSERT_TRUE(ring_.checker.violation().has_value());
    EXPECT_STREQ(to_string(ring_.checker.violation()->invariant), to_string(invariant))
        << ring_.checker.violation()->message;
    EXPECT_THAT(ring_.checker.violation()->message, ::testing::HasSubstr(message));
  }
  void expect_good() {
    ring_.checker.settle();
    const auto& violation = ring_.checker.violation();
    EXPECT_FALSE(violation.has_value()) << to_string(*violation);
  }

  HandRing ring_;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_HAND_RING_H_
