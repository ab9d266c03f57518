// Overwritable rings of the machine's own kernel (W32 to W36), while it writes and while it does
// not.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <variant>
#include <vector>

#include "harness/live/live_testing.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_event.h"
#include "perfring/snapshot/overwritable_ring.h"
#include "perfring/snapshot/snapshot.h"

namespace perfring::live {
namespace {

constexpr std::size_t kSnapshotPayload = 52;
constexpr std::size_t kRecord = 64;

class SnapshotTest : public LiveTest {
 protected:
  OverwritableRing open_ring(std::size_t page_count = 1) {
    return must(OverwritableRing::open(array(), cpu(), page_count));
  }
  void emit_numbers(std::uint64_t first, std::uint32_t count,
                    std::size_t payload = kSnapshotPayload) {
    EXPECT_EQ(emitter().emit_many(cpu(), payload, count, first).accepted, count);
  }
  auto taker() {
    return [this](const PerfEvent& event) {
      if (const auto* const lost = std::get_if<Lost>(&event)) {
        lost_ += lost->count;
        return;
      }
      const DeliveredEvent copied = copy_event(event);
      ASSERT_TRUE(copied.is_sample()) << ::testing::PrintToString(copied);
      numbers_.push_back(copied.number());
    };
  }
  // The numbers that a snapshot delivers, newest first.
  std::vector<std::uint64_t> snapshot(OverwritableRing& ring, Settle settle = Settle::Quickly) {
    numbers_.clear();
    last_ = must(ring.snapshot(settle, taker()));
    return numbers_;
  }
  // Whether each number is 1 less than the one before.
  static bool is_run(const std::vector<std::uint64_t>& numbers) {
    for (std::size_t i = 1; i < numbers.size(); ++i) {
      if (numbers[i] + 1 != numbers[i - 1]) return false;
    }
    return true;
  }

  std::vector<std::uint64_t> numbers_;
  std::uint64_t lost_ = 0;
  Snapshot last_;
};

// K39, K40, W32, W33
TEST_F(SnapshotTest, AFullRingHoldsTheNewestRecords) {
  OverwritableRing ring = open_ring();
  EXPECT_TRUE(snapshot(ring).empty());
  const std::size_t all = os::page_size() / kRecord;
  const std::size_t written = 15 * all + 40;
  emit_numbers(1, static_cast<std::uint32_t>(written));  // none is refused
  EXPECT_EQ(snapshot(ring).size(), all);
  EXPECT_EQ(numbers_.front(), written);
  EXPECT_TRUE(is_run(numbers_));
  EXPECT_EQ(last_.overwritten, written * kRecord - os::page_size());
  EXPECT_FALSE(last_.moved);
}

// W33
TEST_F(SnapshotTest, ARecordThatIsOverwrittenInPartIsLeftOut) {
  OverwritableRing ring = open_ring();
  for (const std::size_t payload : {60U, 100U, 500U}) {
    const std::size_t all = os::page_size() / record_size(payload);
    const std::size_t written = 5 * all + 20;
    emit_numbers(1, static_cast<std::uint32_t>(written), payload);
    snapshot(ring);
    EXPECT_EQ(numbers_.size(), all) << payload;
    EXPECT_EQ(numbers_.front(), written);
    EXPECT_TRUE(is_run(numbers_)) << payload;
  }
}

// W36
TEST_F(SnapshotTest, TheNextSnapshotHasOnlyNewRecords) {
  OverwritableRing ring = open_ring();
  emit_numbers(1, 100);
  snapshot(ring);
  EXPECT_TRUE(snapshot(ring, Settle::Completely).empty());
  emit_numbers(101, 3);
  EXPECT_EQ(snapshot(ring), (std::vector<std::uint64_t>{103, 102, 101}));
  emit_numbers(104, 2);
  numbers_.clear();
  const auto copied = ring.copy(3 * kRecord, taker());
  EXPECT_EQ(copied->events, 2U);
  EXPECT_EQ(numbers_, (std::vector<std::uint64_t>{105, 104}));
}

// K41, W34: outputs during a pause are refused, and counted after it.
TEST_F(SnapshotTest, OutputsDuringAPauseAreCounted) {
  OverwritableRing ring = open_ring();
  emit_numbers(1, 1);
  int refused = 0;
  must(ring.snapshot(Settle::Quickly, [&](const PerfEvent&) {
    for (int i = 0; i < 3; ++i) refused += emit(kSnapshotPayload) == -ENOSPC;
  }));
  EXPECT_EQ(refused, 3);
  emit_numbers(2, 2);
  EXPECT_EQ(snapshot(ring), (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(lost_, 3U);
}

// A writer at full speed on another CPU than the reader's, if there is one.
class SnapshotUnderWayTest : public SnapshotTest {
 protected:
  void while_written(const std::function<void()>& body) {
    std::atomic<bool> stop = false;
    std::thread writer{[&] {
      for (std::uint64_t next = 1; !stop; next += 32) {
        emitter().emit_many(other_cpu().value_or(cpu()), kSnapshotPayload, 32, next);
      }
    }};
    body();
    stop = true;
    writer.join();
  }
  OverwritableRing open_other(std::size_t page_count) {
    return must(OverwritableRing::open(array(), other_cpu().value_or(cpu()), page_count));
  }
};

// W35
TEST_F(SnapshotUnderWayTest, CopiesDuringWritesAreComplete) {
  OverwritableRing ring = open_other(4);
  std::uint64_t newest = 0;
  std::uint64_t events = 0;
  while_written([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    for (int i = 0; i < 1000 || (events == 0 && std::chrono::steady_clock::now() < end); ++i) {
      numbers_.clear();
      const auto copied = ring.copy(3 * kRecord, taker());
      ASSERT_TRUE(is_run(numbers_)) << i;
      events += copied->events;
      if (numbers_.empty()) continue;
      ASSERT_GT(numbers_.back(), newest) << i;
      if (copied->overwritten == 0 && newest != 0) {
        ASSERT_EQ(numbers_.back(), newest + 1) << i;
      }
      newest = numbers_.front();
    }
  });
  EXPECT_EQ(lost_, 0U);
  EXPECT_GT(events, 0U);
}

// W34
TEST_F(SnapshotUnderWayTest, PausedSnapshotsAreComplete) {
  OverwritableRing ring = open_other(4);
  std::uint64_t events = 0;
  while_written([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    for (int i = 0; i < 200 || (events == 0 && std::chrono::steady_clock::now() < end); ++i) {
      const std::uint64_t lost_before = lost_;
      snapshot(ring);
      if (last_.moved) continue;  // events may be damaged
      events += last_.events;
      if (lost_ == lost_before) {
        ASSERT_TRUE(is_run(numbers_)) << i;
      }
      ASSERT_TRUE(std::ranges::is_sorted(numbers_, std::greater{})) << i;
    }
  });
  EXPECT_GT(events, 0U);
}

}  // namespace
}  // namespace perfring::live
