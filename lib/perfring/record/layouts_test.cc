// Layouts: several events in one ring (R12).

#include "perfring/record/layouts.h"

#include <gtest/gtest.h>

#include <array>

#include "perfring/record/testing/decoded.h"

namespace perfring::record {
namespace {

using testing::Guarded;
using testing::Made;
using testing::sampling;
using testing::trailing;

class RecordLayoutsTest : public ::testing::Test {
 protected:
  // Made whole, so that the views' memory outlives them.
  const Any& decoded(const Made& made) {
    memory_.place(made.bytes());
    any_ = decode(memory_.bytes(), layouts_);
    return any_;
  }

  const Layout addr_{trailing(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID)};
  const Layout time_{trailing(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)};
  const std::array<Layouts::Entry, 3> entries_{{{7, &addr_}, {9, &time_}, {12, &time_}}};
  const Layouts layouts_ = Layouts::over(entries_).value();
  Guarded memory_{{}};
  Any any_ = decode({}, addr_);
};

TEST_F(RecordLayoutsTest, ASamplesIdentifierIsAt8) {
  const auto& first = std::get<Sample>(decoded(Made{PERF_RECORD_SAMPLE}.u64(7).u64(1).u64(7)));
  EXPECT_EQ(first.addr(), 1U);
  EXPECT_FALSE(first.time());
  const auto& second =
      std::get<Sample>(decoded(Made{PERF_RECORD_SAMPLE}.u64(9).u64(1).u32(2).u32(0)));
  EXPECT_EQ(second.time(), 1U);
  EXPECT_EQ(second.cpu(), 2U);
  EXPECT_FALSE(second.addr());
}

TEST_F(RecordLayoutsTest, AnyOtherRecordsIdentifierIsInItsLast8Bytes) {
  Made lost{PERF_RECORD_LOST};
  lost.u64(7).u64(5).u64(1234).u32(3).u32(0).u64(12);
  const auto& record = std::get<Lost>(decoded(lost));
  EXPECT_EQ(record.lost(), 5U);
  EXPECT_EQ(record.sample_id().time(), 1234U);
  EXPECT_EQ(record.sample_id().cpu(), 3U);
  Made other{PERF_RECORD_LOST};
  other.u64(9).u64(5).u64(7).u64(7);
  EXPECT_EQ(std::get<Lost>(decoded(other)).sample_id().id(), 7U);
}

TEST_F(RecordLayoutsTest, ARecordOfAnotherEventIsKeptUninterpreted) {
  const auto& unknown = std::get<Unknown>(decoded(Made{PERF_RECORD_SAMPLE}.u64(8).u64(1)));
  EXPECT_EQ(unknown.header().type, unsigned{PERF_RECORD_SAMPLE});
  EXPECT_EQ(unknown.rest().size(), 16U);
  EXPECT_FALSE(unknown.sample_id().identifier());
}

TEST_F(RecordLayoutsTest, WithoutRoomForAnIdentifierARecordIsMalformed) {
  for (const std::uint32_t type : {PERF_RECORD_SAMPLE, PERF_RECORD_SWITCH}) {
    EXPECT_STREQ(std::get<Malformed>(decoded(Made{type})).field, "identifier");
    EXPECT_STREQ(std::get<Malformed>(decoded(Made{type}.u32(7))).field, "identifier");
  }
  EXPECT_STREQ(std::get<Malformed>(decode({}, layouts_)).field, "header");
}

TEST_F(RecordLayoutsTest, FindsEachIdAndNoOther) {
  EXPECT_EQ(layouts_.find(7), &addr_);
  EXPECT_EQ(layouts_.find(9), &time_);
  EXPECT_EQ(layouts_.find(12), &time_);
  for (const std::uint64_t id : {0ULL, 8ULL, 13ULL, ~0ULL}) EXPECT_EQ(layouts_.find(id), nullptr);
}

TEST_F(RecordLayoutsTest, RefusesEventsThatRecordsCannotBeToldApartOf) {
  const Layout no_identifier{trailing(PERF_SAMPLE_ID)};
  const Layout no_sample_id{sampling(PERF_SAMPLE_IDENTIFIER)};
  using Two = std::array<Layouts::Entry, 2>;
  EXPECT_FALSE(Layouts::over(Two{{{1, &addr_}, {2, &no_identifier}}}));
  EXPECT_FALSE(Layouts::over(Two{{{1, &no_sample_id}, {2, &addr_}}}));
  EXPECT_FALSE(Layouts::over(Two{{{1, &addr_}, {2, nullptr}}}));
  EXPECT_FALSE(Layouts::over(Two{{{2, &addr_}, {1, &time_}}}));
  EXPECT_FALSE(Layouts::over(Two{{{2, &addr_}, {2, &time_}}}));
  EXPECT_TRUE(Layouts::over(Two{{{1, &addr_}, {2, &time_}}}));
}

}  // namespace
}  // namespace perfring::record
