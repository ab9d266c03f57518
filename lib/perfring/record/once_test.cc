// The bytes change while they are decoded and looked at, as a hostile producer's may: lengths are
// loaded once, so that no byte outside the record is read. Two inaccessible pages say so.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "perfring/record/testing/decoded.h"
#include "perfring/record/to_string.h"

namespace perfring::record {
namespace {

using testing::Guarded;
using testing::Made;
using testing::sampling;

// Writes the word at `offset` in turn, from another thread, while `look` is called: for a while,
// and as long as look() says that it has not seen both. On a busy machine that may take seconds.
template <class Look>
void while_it_changes(const Guarded& memory, std::size_t offset, std::uint64_t one,
                      std::uint64_t other, const Look& look) {
  auto* const word = reinterpret_cast<std::uint64_t*>(memory.writable().data() + offset);
  std::atomic<bool> stop = false;
  std::thread writer{[&] {
    while (!stop.load(std::memory_order_relaxed)) {
      std::atomic_ref{*word}.store(one, std::memory_order_relaxed);
      std::atomic_ref{*word}.store(other, std::memory_order_relaxed);
    }
  }};
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  bool both = false;
  while (Clock::now() - start < std::chrono::milliseconds{200} ||
         (!both && Clock::now() - start < std::chrono::seconds{30})) {
    for (int i = 0; i < 100; ++i) both = look();
  }
  stop = true;
  writer.join();
}

std::uint64_t sum(const Any& any) {
  return to_string(any).size();
}

// A record whose length at +8 is now right and now far too large.
void stays_inside(const perf_event_attr& attr, const Made& made, std::size_t offset,
                  std::uint64_t right, std::uint64_t wrong) {
  const Guarded memory{made.bytes()};
  const Layout layout{attr};
  std::uint64_t whole = 0;
  std::uint64_t malformed = 0;
  while_it_changes(memory, offset, right, wrong, [&] {
    const Any any = decode(memory.bytes(), layout);
    ++(std::holds_alternative<Malformed>(any) ? malformed : whole);
    EXPECT_NE(sum(any), 0U);
    return whole != 0 && malformed != 0;
  });
  // Both were met: otherwise nothing was shown.
  EXPECT_NE(whole, 0U);
  EXPECT_NE(malformed, 0U);
}

#ifdef PERFRING_TEST_UNDER_TSAN
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "the race is meant"
#else
#define SKIP_UNDER_TSAN()
#endif

TEST(RecordOnceTest, ACallchainsLengthIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  stays_inside(sampling(PERF_SAMPLE_CALLCHAIN), Made{PERF_RECORD_SAMPLE}.u64(2).u64(3).u64(4), 8, 2,
               8000);
}

TEST(RecordOnceTest, AGroupsLengthIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  perf_event_attr attr = sampling(PERF_SAMPLE_READ);
  attr.read_format = PERF_FORMAT_GROUP;
  stays_inside(attr, Made{PERF_RECORD_SAMPLE}.u64(2).u64(3).u64(4), 8, 2, 8000);
}

TEST(RecordOnceTest, ABranchStacksLengthIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  stays_inside(sampling(PERF_SAMPLE_BRANCH_STACK),
               Made{PERF_RECORD_SAMPLE}.u64(1).u64(3).u64(4).u64(0), 8, 1, 2000);
}

TEST(RecordOnceTest, AStacksLengthIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  stays_inside(sampling(PERF_SAMPLE_STACK_USER), Made{PERF_RECORD_SAMPLE}.u64(8).u64(3).u64(4), 8,
               8, 60000);
}

TEST(RecordOnceTest, AuxDatasLengthIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  stays_inside(sampling(PERF_SAMPLE_AUX), Made{PERF_RECORD_SAMPLE}.u64(8).u64(3), 8, 8, 60000);
}

TEST(RecordOnceTest, ARawSizeIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  const auto halves = [](std::uint32_t size) {
    std::uint64_t word = 0;
    std::memcpy(&word, &size, sizeof size);
    return word;
  };
  stays_inside(sampling(PERF_SAMPLE_RAW), Made{PERF_RECORD_SAMPLE}.u32(4).u32(0), 8, halves(4),
               halves(60000));
}

TEST(RecordOnceTest, NamespacesLengthIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  stays_inside(sampling(0), Made{PERF_RECORD_NAMESPACES}.u64(0).u64(1).u64(3).u64(4), 16, 1, 4000);
}

TEST(RecordOnceTest, TheHeadersSizeIsLoadedOnce) {
  SKIP_UNDER_TSAN();
  perf_event_header right{PERF_RECORD_LOST, 0, 24};
  perf_event_header wrong{PERF_RECORD_LOST, 0, 60000};
  stays_inside(sampling(0), Made{PERF_RECORD_LOST}.u64(0).u64(1), 0,
               std::bit_cast<std::uint64_t>(right), std::bit_cast<std::uint64_t>(wrong));
}

TEST(RecordOnceTest, AStringThatLosesItsNulIsStillInside) {
  SKIP_UNDER_TSAN();
  stays_inside(sampling(0), Made{PERF_RECORD_COMM}.u32(1).u32(1).u64(0), 16, 0, ~0ULL);
}

}  // namespace
}  // namespace perfring::record
