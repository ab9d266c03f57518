// S10 and S8 with memory that changes while it is read, and with memory that records its reads: an
// oversize payload may overwrite records that are being read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/ring_over_cursor.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using testing::drain;
using testing::FakeRing;
using testing::KnownRing;
using testing::payload;
using testing::RingOverCursor;

constexpr std::size_t kLookedAtSize = 65536;

// Each test runs with each of these, over a Memory of the test's.
struct OfRing {
  template <class M>
  using Consumer = Ring<M>;
};
struct OfCursor {
  template <class M>
  using Consumer = RingOverCursor<Cursor<M>>;
};
using Consumers = ::testing::Types<OfRing, OfCursor>;
struct Name {
  template <class Consumer>
  static std::string GetName(int) {
    return std::is_same_v<Consumer, OfRing> ? "Ring" : "Cursor";
  }
};

template <class Of, class M>
auto consumer_over(const FakeRing& fake) {
  return *Of::template Consumer<M>::over(fake.page(), fake.data());
}

template <class>
struct ConsumerS1Test : ::testing::Test {};
TYPED_TEST_SUITE(ConsumerS1Test, Consumers, Name);
template <class>
struct ConsumerS6Test : ::testing::Test {};
TYPED_TEST_SUITE(ConsumerS6Test, Consumers, Name);
template <class>
struct RingS8Test : ::testing::Test {};
TYPED_TEST_SUITE(RingS8Test, Consumers, Name);
template <class>
struct RingS10Test : ::testing::Test {};
TYPED_TEST_SUITE(RingS10Test, Consumers, Name);

// Counts the 64-bit loads of each word of the ring, and damages a word once it is loaded.
struct DamagesWords : DefaultMemory {
  static inline std::byte* data;
  static inline std::vector<int> loads;

  template <class T>
  static T read(const std::byte* address) {
    const T value = DefaultMemory::read<T>(address);
    if (sizeof(T) == 8 && address >= data && address < data + kLookedAtSize) {
      const auto offset = static_cast<std::size_t>(address - data);
      ++loads[offset / 8];
      std::memset(data + offset, 0xff, 8);
    }
    return value;
  }
};

// Writes one record of each kind where the drain inspects it by itself, and one where it ends a
// run.
void write_each_kind(KnownRing& known) {
  const auto run = [&] {
    for (unsigned i = 0; i < 13; ++i) known.sample(payload(12, i));
  };
  known.lost(0x0102'0304'0506'0708);
  run();
  known.lost(2);
  known.bad(Defect::BadSample, PERF_RECORD_SAMPLE, 8);
  run();
  known.bad_raw(13, 24);
  known.bad(Defect::BadLost, PERF_RECORD_LOST, 8);
  known.bad(Defect::BadLost, PERF_RECORD_LOST, 16);
  run();
  known.bad(Defect::UnexpectedType, PERF_RECORD_COMM, 24);
  known.sample(payload(100));
  run();
  known.bad_size(PERF_RECORD_SAMPLE, 20, 48);
}

TYPED_TEST(RingS10Test, HeaderOfEachKindIsLoadedOnce) {
  for (const std::uint64_t start :
       {std::size_t{0}, kLookedAtSize - 8, kLookedAtSize - 16, kLookedAtSize - 24 * 14 - 8,
        kLookedAtSize - 24 * 14 - 16, kLookedAtSize - 24 * 20}) {
    KnownRing known{kLookedAtSize, start};
    write_each_kind(known);
    DamagesWords::data = known.fake().data().data();
    DamagesWords::loads.assign(kLookedAtSize / 8, 0);
    const std::vector<CopiedEvent> delivered =
        drain(consumer_over<TypeParam, DamagesWords>(known.fake()));
    ASSERT_EQ(delivered.size(), known.expected().size());
    std::uint64_t at = start;
    for (std::size_t i = 0; i < delivered.size(); at = known.ends()[i++]) {
      const CopiedEvent& expected = known.expected()[i];
      EXPECT_EQ(DamagesWords::loads[at % kLookedAtSize / 8], 1) << i << " from " << start;
      EXPECT_EQ(delivered[i].kind, expected.kind) << i << " from " << start;
      EXPECT_EQ(delivered[i].defect, expected.defect) << i << " from " << start;
      EXPECT_EQ(delivered[i].count, expected.count) << i << " from " << start;
      EXPECT_EQ(delivered[i].bytes.size(), expected.bytes.size()) << i << " from " << start;
      EXPECT_EQ(delivered[i].head_size, expected.head_size) << i << " from " << start;
    }
    EXPECT_EQ(known.page().data_tail, known.fake().head());
  }
}

TYPED_TEST(RingS10Test, EveryCheckUsesSameHeaderCopy) {
  FakeRing fake{kLookedAtSize, kLookedAtSize - 3000};
  std::vector<std::size_t> headers;
  std::vector<CopiedEvent> written;
  const auto add = [&](std::size_t raw) {
    headers.push_back(fake.head() % kLookedAtSize / 8);
    fake.sample(payload(raw));
    written.push_back(CopiedEvent::sample(payload(raw)));
  };
  for (int i = 0; i < 300; ++i) add(i % 40 < 25 ? 12 : static_cast<std::size_t>(4 + 8 * (i % 9)));
  DamagesWords::data = fake.data().data();
  DamagesWords::loads.assign(kLookedAtSize / 8, 0);
  const std::vector<CopiedEvent> delivered = drain(consumer_over<TypeParam, DamagesWords>(fake));
  ASSERT_EQ(delivered.size(), written.size());
  for (std::size_t i = 0; i < delivered.size(); ++i)
    EXPECT_EQ(delivered[i].bytes, written[i].bytes) << i;
  for (const std::size_t header : headers) EXPECT_EQ(DamagesWords::loads[header], 1) << header;
  EXPECT_EQ(std::ranges::count(DamagesWords::loads, 0),
            static_cast<long>(kLookedAtSize / 8 - headers.size()));
}

// Raises each raw size once it is loaded: a consumer that loads it again must check it again.
struct RaisesRawSizes : DefaultMemory {
  static inline std::byte* data;

  template <class T>
  static T read(const std::byte* address) {
    const T value = DefaultMemory::read<T>(address);
    if (sizeof(T) == 4 && address >= data && address < data + kLookedAtSize) {
      std::memset(data + (address - data), 0xff, sizeof(T));
    }
    return value;
  }
};

TYPED_TEST(RingS10Test, ARawSizeThatGrowsWhenLookedAtLeadsNowhereElse) {
  for (std::uint64_t before = 0; before < 24 * 20; before += 8) {
    KnownRing known{kLookedAtSize, kLookedAtSize - before};
    for (unsigned i = 0; i < 40; ++i) known.sample(payload(i % 17 == 16 ? 11 : 12, i), 24);
    RaisesRawSizes::data = known.fake().data().data();
    const std::vector<CopiedEvent> delivered =
        drain(consumer_over<TypeParam, RaisesRawSizes>(known.fake()));
    ASSERT_EQ(delivered.size(), known.expected().size());
    for (std::size_t i = 0; i < delivered.size(); ++i) {
      if (delivered[i].kind == CopiedEvent::Kind::Malformed) {
        EXPECT_EQ(delivered[i].defect, Defect::BadSample);
      } else {
        EXPECT_EQ(delivered[i], known.expected()[i]);
      }
    }
    EXPECT_EQ(known.page().data_tail, known.fake().head());
  }
}

// Publishes one more record as soon as data_head has been read.
struct PublishesOnRead : DefaultMemory {
  static inline KnownRing* known;

  static Position read_once(const SharedPosition& field) {
    const Position value = DefaultMemory::read_once(field);
    if (&field == &known->page().data_head) known->sample(payload(12, 99));
    return value;
  }
};

TYPED_TEST(ConsumerS1Test, RecordPublishedMidDrainWaitsForNextDrain) {
  KnownRing known{kLookedAtSize, kLookedAtSize - 96};
  PublishesOnRead::known = &known;
  std::size_t written = 0;
  for (unsigned i = 0; i < 20; ++i) known.sample(payload(12, i));
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t head = known.fake().head();
    const std::vector<CopiedEvent> due{known.expected().begin() + static_cast<long>(written),
                                       known.expected().end()};
    written = known.expected().size();
    EXPECT_EQ((drain(consumer_over<TypeParam, PublishesOnRead>(known.fake()))), due);
    EXPECT_EQ(known.page().data_tail, head);
  }
}

TYPED_TEST(ConsumerS6Test, ReadableReadsHeadOnce) {
  KnownRing known{kLookedAtSize};
  PublishesOnRead::known = &known;
  EXPECT_FALSE((consumer_over<TypeParam, PublishesOnRead>(known.fake())).readable());
  EXPECT_EQ(known.expected().size(), 1U);
  EXPECT_TRUE((consumer_over<TypeParam, PublishesOnRead>(known.fake())).readable());
  EXPECT_EQ(known.expected().size(), 2U);
}

// Counts the reads inside [data_tail, data_head), and those outside.
struct Bounded : DefaultMemory {
  static inline const std::byte* data;
  static inline std::uint64_t tail;
  static inline std::uint64_t head;
  static inline std::uint64_t inside;
  static inline int outside;

  template <class T>
  static T read(const std::byte* address) {
    if (address >= data - 64 && address < data + kLookedAtSize + 64) {
      const auto index = static_cast<std::uint64_t>(address - data);
      if ((index - tail) % kLookedAtSize + sizeof(T) > head - tail || index % sizeof(T) != 0) {
        ++outside;
      } else {
        ++inside;
      }
    }
    return DefaultMemory::read<T>(address);
  }
};

// Drains the first `length` bytes of a record, for every kind of record.
TYPED_TEST(RingS8Test, NoByteOutsideOfTailToHeadIsRead) {
  for (const std::uint32_t type : {PERF_RECORD_SAMPLE, PERF_RECORD_LOST, PERF_RECORD_COMM}) {
    for (const std::size_t size : {0U, 8U, 16U, 24U, 32U}) {
      for (std::size_t length = 8; length <= 32; length += 8) {
        for (std::uint64_t run = 0; run <= 12; ++run) {
          KnownRing known{kLookedAtSize, kLookedAtSize - 24 * run};
          for (unsigned i = 0; i < run; ++i) known.sample(payload(12, i));
          known.fake().raw_record(type, size, {}, length);
          Bounded::data = known.fake().data().data();
          Bounded::tail = known.page().data_tail;
          Bounded::head = known.page().data_head;
          Bounded::inside = 0;
          Bounded::outside = 0;
          drain(consumer_over<TypeParam, Bounded>(known.fake()));
          ASSERT_EQ(Bounded::outside, 0) << "type " << type << " of size " << size << ", " << length
                                         << " bytes available, after " << run << " samples";
          ASSERT_GE(Bounded::inside, run + 1) << "each record's header is read";
        }
      }
    }
  }
}

}  // namespace
}  // namespace perfring
