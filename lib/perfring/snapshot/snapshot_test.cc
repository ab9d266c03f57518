// Snapshots of rings that the test writes downwards, as the kernel writes an overwritable ring.

#include "perfring/snapshot/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "perfring/ring/hardware_memory.h"
#include "perfring/testing/rings.h"

namespace perfring {
namespace {

using testing::Backward;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kSize = Backward::kSize;

std::vector<std::uint64_t> numbers;
void collect(const PerfEvent& event) {
  const auto* const sample = std::get_if<Sample>(&event);
  numbers.push_back(sample != nullptr ? sample->as<std::uint64_t>().value_or(0)
                                      : ~std::uint64_t{0});
}

class SnapshotsTest : public ::testing::Test {
 protected:
  void SetUp() override { numbers.clear(); }
  std::vector<std::uint64_t> read(Snapshots<>& snapshots) {
    numbers.clear();
    last_ = snapshots.read(collect);
    return numbers;
  }
  std::vector<std::uint64_t> copy(Snapshots<>& snapshots, std::size_t margin = 0) {
    numbers.clear();
    last_ = snapshots.copy(copy_, margin, collect).value();
    return numbers;
  }
  Snapshot last_;
  alignas(8) std::byte copy_[kSize];
};

TEST_F(SnapshotsTest, TheNewestRecordIsFirst) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  EXPECT_THAT(read(snapshots), IsEmpty());
  for (std::uint64_t i = 1; i <= 4; ++i) ring.write(i);
  EXPECT_THAT(read(snapshots), ElementsAre(4, 3, 2, 1));
  EXPECT_EQ(last_, (Snapshot{.events = 4, .overwritten = 0, .moved = false}));
}

TEST_F(SnapshotsTest, TheNextSnapshotEndsWhereTheOneBeforeBegan) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  ring.write(1);
  read(snapshots);
  EXPECT_THAT(read(snapshots), IsEmpty());
  ring.write(2);
  ring.write(3);
  EXPECT_THAT(copy(snapshots), ElementsAre(3, 2));
  ring.write(4);
  EXPECT_THAT(read(snapshots), ElementsAre(4));
  EXPECT_EQ(last_.overwritten, 0U);
}

// W33: the ring's size is not a multiple of 72: 56 records are whole, and 64 bytes are left of the
// 57th.
TEST_F(SnapshotsTest, ARecordThatIsOverwrittenInPartIsLeftOut) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  for (std::uint64_t i = 1; i <= 100; ++i) ring.write(i, 72);
  read(snapshots);
  ASSERT_THAT(numbers, SizeIs(56));
  EXPECT_EQ(numbers.front(), 100U);
  EXPECT_EQ(numbers.back(), 45U);
}

TEST_F(SnapshotsTest, RecordsOfEverySizeAreIntactAtEveryPlace) {
  for (std::size_t size = 24; size <= 200; size += 8) {
    Backward ring;
    for (std::uint64_t i = 1; i <= 600; ++i) {
      ring.write(i, size);
      if (i % 37 != 0) continue;
      Snapshots fresh = ring.snapshots();
      read(fresh);
      const std::size_t whole = std::min(static_cast<std::size_t>(i), kSize / size);
      ASSERT_EQ(numbers.size(), whole) << size;
      for (std::size_t k = 0; k < whole; ++k) ASSERT_EQ(numbers[k], i - k) << size;
    }
  }
}

TEST_F(SnapshotsTest, CountsBytesOverwrittenBetweenSnapshots) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  for (std::uint64_t i = 1; i <= 1000; ++i) ring.write(i, 64);
  read(snapshots);
  EXPECT_EQ(last_.overwritten, 0U) << "of a first one it is not known";
  for (std::uint64_t i = 1; i <= 100; ++i) ring.write(i, 64);
  read(snapshots);
  EXPECT_THAT(numbers, SizeIs(64));
  EXPECT_EQ(last_.overwritten, 36 * 64U);
}

TEST_F(SnapshotsTest, AMovedHeadIsNoticed) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  ring.write(1);
  last_ = snapshots.read([&](const PerfEvent&) { ring.write(2); });
  EXPECT_TRUE(last_.moved);
  EXPECT_EQ(last_.events, 1U);
  EXPECT_THAT(read(snapshots), ElementsAre(2));
  EXPECT_FALSE(last_.moved);
}

// Records the reads of data_head and the fences, and one entry for each series of other reads.
struct TracingMemory : HardwareMemory {
  static inline std::vector<std::string> trace;

  static void add(const char* access) {
    if (trace.empty() || trace.back() != access) trace.emplace_back(access);
  }
  static Position read_once(const SharedPosition& field) {
    add("data_head");
    return HardwareMemory::read_once(field);
  }
  static void fence_after_read_of(const SharedPosition& field) {
    add("fence");
    HardwareMemory::fence_after_read_of(field);
  }
  template <class T>
  static T read(const std::byte* address) {
    add("read");
    return HardwareMemory::read<T>(address);
  }
};

// V3 and V4: without the second fence, a processor may read data_head before the records.
TEST_F(SnapshotsTest, DataHeadIsReadAgainAfterAFence) {
  Backward ring;
  auto snapshots = Snapshots<TracingMemory>::over(ring.page(), ring.data()).value();
  for (std::uint64_t i = 1; i <= 4; ++i) ring.write(i);
  TracingMemory::trace.clear();
  snapshots.read([](const PerfEvent&) {});
  EXPECT_THAT(TracingMemory::trace,
              ElementsAre("data_head", "fence", "read", "fence", "data_head"));
  TracingMemory::trace.clear();
  ASSERT_TRUE(snapshots.copy(copy_, 0, [](const PerfEvent&) {}));
  EXPECT_THAT(TracingMemory::trace,
              ElementsAre("data_head", "fence", "read", "fence", "data_head"));
}

// Memory that a writer changes while it is copied.
struct WrittenMeanwhile : HardwareMemory {
  static inline std::function<void()> at_half;
  static inline std::size_t words = 0;
  template <class T>
  static T read(const std::byte* address) {
    if (++words == kSize / 16 && at_half) at_half();
    return HardwareMemory::read<T>(address);
  }
};

class SnapshotsCopyTest : public SnapshotsTest {
 protected:
  // Copies a full ring. Halfway through the copy, writes `records` records and begins one more.
  std::vector<std::uint64_t> copied(int records, std::size_t margin) {
    Backward ring;
    auto snapshots = Snapshots<WrittenMeanwhile>::over(ring.page(), ring.data()).value();
    for (std::uint64_t i = 1; i <= 1000; ++i) ring.write(i, 64);
    WrittenMeanwhile::words = 0;
    WrittenMeanwhile::at_half = [&] {
      for (int i = 0; i < records; ++i) ring.write(0, 64);
      ring.reserve(0, 64);
    };
    numbers.clear();
    last_ = snapshots.copy(copy_, margin, collect).value();
    WrittenMeanwhile::at_half = nullptr;
    return numbers;
  }
};

TEST_F(SnapshotsCopyTest, RecordsOverwrittenDuringACopyAreLeftOut) {
  for (int records = 0; records < 63; ++records) {
    const auto copies = copied(records, 64);
    ASSERT_EQ(copies.size(), static_cast<std::size_t>(63 - records));
    ASSERT_EQ(last_.overwritten, 0U) << "since none (V5)";
    for (std::size_t i = 0; i < copies.size(); ++i) ASSERT_EQ(copies[i], 1000 - i) << records;
  }
  for (const int records : {63, 64, 200}) EXPECT_THAT(copied(records, 64), IsEmpty());
}

// W35: the purpose of the margin.
TEST_F(SnapshotsCopyTest, WithoutMarginNewRecordDamagesOldest) {
  bool damaged = false;
  for (int records = 0; records < 63; ++records) {
    for (const std::uint64_t number : copied(records, 0)) damaged |= number == 0;
  }
  EXPECT_TRUE(damaged);
}

TEST_F(SnapshotsCopyTest, TheEventsOfACopyLieInTheCopy) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  ring.write(1);
  int events = 0;
  snapshots.copy(copy_, 0, [&](const PerfEvent& event) {
    ++events;
    const Bytes head = std::get<Sample>(event).head;
    EXPECT_TRUE(head.data() >= copy_ && head.data() + head.size() <= copy_ + kSize);
  });
  EXPECT_EQ(events, 1);
}

// A copy has what the ring held when the copy began, and the next copy begins there.
TEST_F(SnapshotsCopyTest, RecordsWrittenDuringACopyAreOfTheNext) {
  Backward ring;
  auto snapshots = Snapshots<WrittenMeanwhile>::over(ring.page(), ring.data()).value();
  const auto copy_while_written = [&](std::uint64_t from, std::uint64_t to) {
    WrittenMeanwhile::words = 0;
    WrittenMeanwhile::at_half = [&] {
      for (std::uint64_t i = from; i <= to; ++i) ring.write(i, 64);
    };
    numbers.clear();
    last_ = snapshots.copy(copy_, 64, collect).value();
    WrittenMeanwhile::at_half = nullptr;
    return numbers;
  };
  for (std::uint64_t i = 1; i <= 3; ++i) ring.write(i, 64);
  EXPECT_THAT(copy_while_written(4, 6), ElementsAre(3, 2, 1));
  EXPECT_THAT(copy_while_written(7, 8), ElementsAre(6, 5, 4));
  EXPECT_THAT(copy_while_written(9, 8), ElementsAre(8, 7));
  EXPECT_EQ(last_.overwritten, 0U);
}

TEST_F(SnapshotsCopyTest, AMarginOfTheWholeRingLeavesNothing) {
  for (const std::size_t margin : {kSize, kSize + 1, ~std::size_t{0} - 64, ~std::size_t{0}}) {
    for (const int records : {0, 1, 2}) EXPECT_THAT(copied(records, margin), IsEmpty());
  }
}

TEST_F(SnapshotsCopyTest, BytesThatTheMarginLeavesOutAreCounted) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  ring.write(1, 64);
  copy(snapshots);
  for (std::uint64_t i = 1; i <= 64; ++i) ring.write(i, 64);
  EXPECT_THAT(copy(snapshots, 128), SizeIs(62));
  EXPECT_EQ(last_.overwritten, 128U);
}

TEST_F(SnapshotsCopyTest, CopyRefusesUnsuitableBuffer) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  ring.write(1);
  const std::span all{copy_};
  EXPECT_EQ(snapshots.copy(all.first(kSize / 2), 0, collect), std::nullopt);
  EXPECT_EQ(snapshots.copy({}, 0, collect), std::nullopt);
  EXPECT_EQ(snapshots.copy(ring.data(), 0, collect), std::nullopt);
  alignas(8) std::byte more[kSize + 8];
  EXPECT_EQ(snapshots.copy(std::span{more}.subspan(1, kSize), 0, collect), std::nullopt);
  EXPECT_THAT(read(snapshots), ElementsAre(1)) << "nothing was read before";
}

TEST_F(SnapshotsTest, TheCallbackStopsASnapshot) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  for (std::uint64_t i = 1; i <= 4; ++i) ring.write(i);
  int events = 0;
  last_ = snapshots.read([&](const PerfEvent&) { return ++events != 2; });
  EXPECT_EQ(last_.events, 2U);
  EXPECT_THAT(read(snapshots), IsEmpty()) << "the others count as read";
  ring.write(5);
  EXPECT_THROW(snapshots.read([](const PerfEvent&) { throw 7; }), int);
  EXPECT_THAT(read(snapshots), IsEmpty());
  ring.write(6);
  snapshots.read(Overloaded{[&](const Sample&) { events = 100; }, [](const auto&) {}});
  EXPECT_EQ(events, 100);
}

TEST_F(SnapshotsTest, DeliversEventsOfEveryKind) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  ring.write(1);
  ring.write(2);
  ring.set_header(ring.head(), {PERF_RECORD_LOST, 0, 24});
  ring.write(3);
  ring.set_header(ring.head(), {PERF_RECORD_MMAP, 0, 24});
  std::vector<std::size_t> kinds;
  snapshots.read([&](const PerfEvent& event) { kinds.push_back(event.index()); });
  EXPECT_THAT(kinds, ElementsAre(2, 1, 0));
}

TEST_F(SnapshotsTest, AnImpossibleSizeEndsTheSnapshot) {
  for (const unsigned size : {0U, 4U, 12U, 65528U}) {
    Backward ring;
    Snapshots snapshots = ring.snapshots();
    ring.write(1);
    ring.write(2);
    const std::uint64_t second = ring.head();
    ring.write(3);
    ring.set_header(second, {PERF_RECORD_SAMPLE, 0, static_cast<__u16>(size)});
    EXPECT_THAT(read(snapshots), ElementsAre(3)) << size;
  }
}

TEST_F(SnapshotsTest, AnImpossibleHeadIsMalformed) {
  Backward ring;
  Snapshots snapshots = ring.snapshots();
  for (const std::uint64_t head : {std::uint64_t{0} - 12, std::uint64_t{0} - 8191}) {
    ring.page().data_head = head;
    Snapshots fresh = ring.snapshots();
    std::vector<Defect> defects;
    fresh.read([&](const PerfEvent& event) {
      defects.push_back(std::get<Malformed>(event).defect);
      EXPECT_LE(std::get<Malformed>(event).size(), kSize);
    });
    EXPECT_THAT(defects, ElementsAre(Defect::BadPositions));
  }
  snapshots.read(collect);
  ring.page().data_head = std::uint64_t{0} - 8208;
  snapshots.read(collect);  // 17 bytes, between a head that is a place and one that is not
}

// V8: as on kernels before 5.2 (K59).
TEST_F(SnapshotsTest, SnapshotRecoversAfterHeadMovesBack) {
  for (const std::uint64_t back : {std::size_t{8}, std::size_t{24}, kSize}) {
    Backward ring;
    Snapshots snapshots = ring.snapshots();
    for (std::uint64_t i = 1; i <= 3; ++i) ring.write(i);
    EXPECT_THAT(read(snapshots), ElementsAre(3, 2, 1));
    ring.page().data_head += back;
    EXPECT_THAT(read(snapshots), IsEmpty()) << back;
    EXPECT_EQ(last_, Snapshot{}) << back;
    EXPECT_THAT(copy(snapshots), IsEmpty()) << back;
    EXPECT_EQ(last_, Snapshot{}) << back;
    ring.write(4);
    EXPECT_THAT(read(snapshots), ElementsAre(4)) << back;
    EXPECT_EQ(last_.overwritten, 0U);
  }
}

// data_head goes back between its two reads.
struct GoesBack : DefaultMemory {
  static inline unsigned reads;
  static Position read_once(const SharedPosition& head) {
    return DefaultMemory::read_once(head) + (++reads % 2 == 0 ? 24 : 0);
  }
};

TEST_F(SnapshotsTest, HeadMovingBackDuringCopyDefersRecords) {
  Backward ring;
  auto snapshots = Snapshots<GoesBack>::over(ring.page(), ring.data()).value();
  for (std::uint64_t i = 1; i <= 3; ++i) ring.write(i);
  GoesBack::reads = 0;
  EXPECT_EQ(snapshots.copy(copy_, 0, collect), Snapshot{});
  EXPECT_THAT(numbers, IsEmpty());
  GoesBack::reads = 1;  // the first read is too high, so the newest record is left to the next
  EXPECT_EQ(snapshots.copy(copy_, 0, collect), (Snapshot{.events = 2})) << "the first still";
  EXPECT_THAT(numbers, ElementsAre(2, 1));
}

// The kernel's positions run down from 0, and eventually pass a multiple of 2^32.
TEST_F(SnapshotsTest, PositionsAreComparedModulo2To32) {
  Backward ring{std::uint64_t{0} - (std::uint64_t{1} << 32) + 100 * 64};
  for (std::uint64_t i = 1; i <= 64; ++i) ring.write(i, 64);
  Snapshots snapshots = ring.snapshots();
  EXPECT_THAT(read(snapshots), SizeIs(64));
  for (std::uint64_t i = 1; i <= 50; ++i) ring.write(i, 64);  // past the multiple
  EXPECT_THAT(read(snapshots), SizeIs(50));
  EXPECT_EQ(last_.overwritten, 0U);
}

TEST_F(SnapshotsTest, NothingIsWrittenToTheRing) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span mapping{static_cast<std::byte*>(mapped), 2 * page};
  const perf_event_header header{PERF_RECORD_SAMPLE, 0, 16};
  std::memcpy(mapping.data() + 2 * page - 16, &header, sizeof(header));
  reinterpret_cast<perf_event_mmap_page*>(mapped)->data_head = std::uint64_t{0} - 16;
  ASSERT_EQ(::mprotect(mapped, 2 * page, PROT_READ), 0);
  auto snapshots = Snapshots<>::over(mapping, page).value();
  EXPECT_EQ(snapshots.read(collect).events, 1U);
  std::vector<std::byte> to(page);
  EXPECT_EQ(snapshots.copy(to, 0, collect)->events, 0U);
  EXPECT_EQ(snapshots.size(), page);
  ::munmap(mapped, 2 * page);
  EXPECT_FALSE(Snapshots<>::over({}, page).has_value());
}

}  // namespace
}  // namespace perfring
