// Records as a Cursor hands them out, whole and uninterpreted: each is decoded, also the one that
// straddles the ring's end.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "perfring/record/testing/decoded.h"
#include "perfring/record/whole.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/testing/fake_ring.h"

namespace perfring::record {
namespace {

using perfring::testing::FakeRing;
using testing::Made;
using testing::sampling;

TEST(RecordFromCursorTest, EachIsDecodedWhereverTheRingEnds) {
  const std::vector<std::byte> comm =
      Made{PERF_RECORD_COMM}.u32(1).u32(2).text("a command").bytes();
  const std::vector<std::byte> lost = Made{PERF_RECORD_LOST}.u64(3).u64(4).bytes();
  const Layout layout{sampling(0)};
  for (std::size_t before_end = 8; before_end <= comm.size() + lost.size(); before_end += 8) {
    FakeRing fake{65536, 65536 - before_end};
    for (const auto* record : {&comm, &lost}) {
      fake.put(fake.head(), record->data(), record->size());
      fake.advance(record->size());
    }
    Cursor<> cursor = *Cursor<>::over(fake.page(), fake.data());
    cursor.look();
    std::array<std::byte, 64> scratch{};
    const auto decoded = [&] {
      const auto record = cursor.next().value();
      return decode(whole(record.head(), record.tail(), scratch), layout);
    };
    const Any first = decoded();
    ASSERT_TRUE(std::holds_alternative<Comm>(first)) << before_end;
    EXPECT_EQ(std::get<Comm>(first).tid(), 2U);
    EXPECT_EQ(std::get<Comm>(first).comm(), "a command");
    const Any second = decoded();
    ASSERT_TRUE(std::holds_alternative<Lost>(second)) << before_end;
    EXPECT_EQ(std::get<Lost>(second).lost(), 4U);
    cursor.release();
    EXPECT_EQ(fake.page().data_tail, fake.head());
  }
}

}  // namespace
}  // namespace perfring::record
