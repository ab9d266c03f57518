// The traps T10 to T20 of harness/RECORD_FACTS.md: lengths, and the fields that depend on them.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/record/branch_stack.h"
#include "perfring/record/callchain.h"
#include "perfring/record/counts.h"
#include "perfring/record/read_values.h"
#include "perfring/record/sample.h"
#include "perfring/record/uapi.h"
#include "perfring/record/whole.h"
#include "perfring/testing/hand_made_records.h"

namespace perfring::record {
namespace {

using testing::add_sample_id;
using testing::DecodedRecord;
using testing::hex;
using testing::kTrailer;
using testing::RecordBuilder;
using testing::sampling;
using testing::trailing;

TEST(RecordTrapT10Test, WithoutAnAbiNoRegistersFollowWhateverTheMask) {
  perf_event_attr attr = sampling(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR);
  attr.sample_regs_user = 0xff0fff;
  attr.sample_regs_intr = 0x111;
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(PERF_SAMPLE_REGS_ABI_NONE).u64(PERF_SAMPLE_REGS_ABI_32).u64(1).u64(2).u64(3);
  const DecodedRecord decoded{builder, attr};
  const auto& sample = decoded.as<Sample>();
  EXPECT_EQ(sample.regs_user()->abi(), std::uint64_t{PERF_SAMPLE_REGS_ABI_NONE});
  EXPECT_TRUE(sample.regs_user()->regs().empty());
  EXPECT_FALSE(sample.regs_user()->reg(0));
  EXPECT_EQ(sample.regs_intr()->abi(), std::uint64_t{PERF_SAMPLE_REGS_ABI_32});
  EXPECT_EQ(sample.regs_intr()->reg(0), 1U);
  EXPECT_EQ(sample.regs_intr()->reg(4), 2U);
  EXPECT_EQ(sample.regs_intr()->reg(8), 3U);
  EXPECT_FALSE(sample.regs_intr()->reg(1));
  EXPECT_FALSE(sample.regs_intr()->reg(64));
}

TEST(RecordTrapT10Test, AnAbiOf64BitsIsNotNone) {
  perf_event_attr attr = sampling(PERF_SAMPLE_REGS_USER);
  attr.sample_regs_user = 3;
  constexpr std::uint64_t kAbi = std::uint64_t{1} << 32;
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SAMPLE}.u64(kAbi).u64(1).u64(2), attr};
  EXPECT_EQ(decoded.as<Sample>().regs_user()->abi(), kAbi);
  EXPECT_EQ(decoded.as<Sample>().regs_user()->regs().size(), 2U);
}

TEST(RecordTrapT11Test, AStackOfSize0HasNoDynSize) {
  const perf_event_attr attr = sampling(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT);
  const DecodedRecord none{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0).u64(77), attr};
  EXPECT_TRUE(none.as<Sample>().stack_user()->data.empty());
  EXPECT_EQ(none.as<Sample>().stack_user()->dyn_size, 0U);
  EXPECT_EQ(none.as<Sample>().weight()->full, 77U);
  const DecodedRecord some{RecordBuilder{PERF_RECORD_SAMPLE}.u64(16).run(16, 1).u64(5).u64(77),
                           attr};
  EXPECT_EQ(some.as<Sample>().stack_user()->data.size(), 16U);
  EXPECT_EQ(hex(some.as<Sample>().stack_user()->dumped()), "0102030405");
  EXPECT_EQ(some.as<Sample>().weight()->full, 77U);
  const DecodedRecord lies{RecordBuilder{PERF_RECORD_SAMPLE}.u64(16).run(16, 1).u64(~0ULL).u64(77),
                           attr};
  EXPECT_EQ(lies.as<Sample>().stack_user()->dumped().size(), 16U);
}

TEST(RecordTrapT11Test, WhatWasDumpedIsTheSmallerOfBothSizes) {
  const perf_event_attr attr = sampling(PERF_SAMPLE_STACK_USER);
  constexpr std::uint64_t kBeyond32Bits = 1ULL << 32;
  const auto dumped = [&attr](std::uint64_t dyn_size) {
    const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SAMPLE}.u64(16).run(16, 1).u64(dyn_size),
                                attr};
    EXPECT_EQ(decoded.as<Sample>().stack_user()->dyn_size, dyn_size);
    return decoded.as<Sample>().stack_user()->dumped().size();
  };
  EXPECT_EQ(dumped(0), 0U);
  EXPECT_EQ(dumped(15), 15U);
  EXPECT_EQ(dumped(16), 16U);
  EXPECT_EQ(dumped(17), 16U);
  constexpr std::uint64_t kHighest = 1ULL << 63;
  for (const std::uint64_t dyn_size : {kBeyond32Bits, kBeyond32Bits + 8, kHighest}) {
    EXPECT_EQ(dumped(dyn_size), 16U) << dyn_size;
  }
}

TEST(RecordTrapT12Test, GroupReadStartsWithMemberCount) {
  perf_event_attr attr = sampling(PERF_SAMPLE_READ);
  attr.read_format = 31;
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(2).u64(10).u64(11).u64(20).u64(21).u64(22).u64(30).u64(31).u64(32);
  const DecodedRecord decoded{builder, attr};
  const ReadValues values = decoded.as<Sample>().values().value();
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values.time_enabled(), 10U);
  EXPECT_EQ(values.time_running(), 11U);
  EXPECT_EQ(values[0].value, 20U);
  EXPECT_EQ(values[0].id, 21U);
  EXPECT_EQ(values[0].lost, 22U);
  EXPECT_EQ(values[1].value, 30U);
  EXPECT_EQ(values[1].id, 31U);
  EXPECT_EQ(values[1].lost, 32U);
}

TEST(RecordTrapT12Test, TheValueOfASingleEventComesFirst) {
  perf_event_attr attr{};
  attr.read_format = 31 & ~PERF_FORMAT_GROUP;
  const DecodedRecord decoded{
      RecordBuilder{PERF_RECORD_READ}.u32(1).u32(2).u64(20).u64(10).u64(11).u64(21).u64(22), attr};
  const ReadValues values = decoded.as<Read>().values();
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].value, 20U);
  EXPECT_EQ(values.time_enabled(), 10U);
  EXPECT_EQ(values.time_running(), 11U);
  EXPECT_EQ(values[0].id, 21U);
  EXPECT_EQ(values[0].lost, 22U);
}

TEST(RecordTrapT13Test, AWeightStructTakes8Bytes) {
  const perf_event_attr attr = sampling(PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC);
  perf_sample_weight weight;
  weight.full = 0;
  weight.var1_dw = 71;
  weight.var2_w = 72;
  weight.var3_w = 73;
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SAMPLE}.u64(weight.full).u64(5), attr};
  EXPECT_EQ(decoded.as<Sample>().weight()->var1_dw, 71U);
  EXPECT_EQ(decoded.as<Sample>().weight()->var2_w, 72U);
  EXPECT_EQ(decoded.as<Sample>().weight()->var3_w, 73U);
  EXPECT_EQ(decoded.as<Sample>().data_src()->val, 5U);
}

constexpr std::uint64_t kHwIndex = 1U << 17;
constexpr std::uint64_t kCounters = 1U << 19;

perf_event_attr branches(std::uint64_t sample_type, std::uint64_t branch_sample_type) {
  perf_event_attr attr = sampling(sample_type | PERF_SAMPLE_BRANCH_STACK);
  attr.branch_sample_type = branch_sample_type;
  return attr;
}

TEST(RecordTrapT14Test, BranchStackFieldsAreInKernelOrder) {
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(2).u64(9).u64(1).u64(2).u64(1).u64(3).u64(4).u64(0).u64(50).u64(51).u64(77);
  const DecodedRecord decoded{builder, branches(PERF_SAMPLE_WEIGHT, kHwIndex | kCounters)};
  const BranchStack stack = decoded.as<Sample>().branch_stack().value();
  ASSERT_EQ(stack.size(), 2U);
  EXPECT_EQ(stack.hw_idx(), 9U);
  EXPECT_EQ(stack[0].to, 2U);
  EXPECT_EQ(stack[1].from, 3U);
  ASSERT_EQ(stack.counters().size(), 2U);
  EXPECT_EQ(stack.counters()[1], 51U);
  EXPECT_EQ(decoded.as<Sample>().weight()->full, 77U);
}

TEST(RecordTrapT14Test, OptionalBranchFieldsRequireTheirFlags) {
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SAMPLE}.u64(1).u64(1).u64(2).u64(0),
                              branches(0, 0)};
  const BranchStack stack = decoded.as<Sample>().branch_stack().value();
  EXPECT_FALSE(stack.hw_idx());
  EXPECT_TRUE(stack.counters().empty());
  EXPECT_TRUE(decoded.as<Sample>().rest().empty());
}

TEST(RecordTrapT14Test, TheRecordsEndTellsWhetherAnEmptyStackHasHwIdx) {
  const perf_event_attr last = branches(0, kHwIndex);
  const DecodedRecord none{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0), last};
  EXPECT_FALSE(none.as<Sample>().branch_stack()->hw_idx());
  EXPECT_EQ(none.as<Sample>().branch_stack()->size(), 0U);
  const DecodedRecord empty{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0).u64(9), last};
  EXPECT_EQ(empty.as<Sample>().branch_stack()->hw_idx(), 9U);

  const perf_event_attr more = branches(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_AUX, kHwIndex);
  const DecodedRecord without{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0).u64(77).u64(8).u64(1), more};
  EXPECT_FALSE(without.as<Sample>().branch_stack()->hw_idx());
  EXPECT_EQ(without.as<Sample>().weight()->full, 77U);
  EXPECT_EQ(without.as<Sample>().aux()->size(), 8U);
  const DecodedRecord with{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0).u64(9).u64(77).u64(8).u64(1),
                           more};
  EXPECT_EQ(with.as<Sample>().branch_stack()->hw_idx(), 9U);
  EXPECT_EQ(with.as<Sample>().weight()->full, 77U);
  EXPECT_EQ(with.as<Sample>().aux()->size(), 8U);
  EXPECT_EQ(
      (DecodedRecord{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0).u64(77).u64(16), more}.malformed()),
      "size");
}

TEST(RecordTrapT15Test, FramesContainOnlyAddresses) {
  const auto marker = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(8).u64(5).u64(marker(-128)).u64(0x10).u64(0x11).u64(marker(-512)).u64(0x20);
  builder.u64(marker(-640)).u64(0xc00c1e);
  const DecodedRecord decoded{builder, sampling(PERF_SAMPLE_CALLCHAIN)};
  const Callchain chain = decoded.as<Sample>().callchain().value();
  EXPECT_EQ(chain.ips().size(), 8U);
  EXPECT_EQ(chain.deferred_cookie(), 0xc00c1eU);
  std::vector<Frame> frames;
  for (const Frame frame : chain.frames()) frames.push_back(frame);
  const std::vector<Frame> expected{
      {0, 5}, {marker(-128), 0x10}, {marker(-128), 0x11}, {marker(-512), 0x20}};
  EXPECT_TRUE(frames == expected);
  EXPECT_TRUE(is_context(marker(-4095)));
  EXPECT_FALSE(is_context(marker(-4096)));
}

TEST(RecordTrapT15Test, ACallchainMayBeEmpty) {
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0),
                              sampling(PERF_SAMPLE_CALLCHAIN)};
  EXPECT_TRUE(decoded.as<Sample>().callchain()->ips().empty());
  for (const Frame frame : decoded.as<Sample>().callchain()->frames()) ADD_FAILURE() << frame.ip;
  EXPECT_FALSE(decoded.as<Sample>().callchain()->deferred_cookie());
}

TEST(RecordTrapT16Test, LostKeepsItsIdApartFromSampleId) {
  RecordBuilder builder{PERF_RECORD_LOST};
  builder.u64(4301).u64(538);
  const DecodedRecord decoded{add_sample_id(builder), trailing(kTrailer)};
  EXPECT_EQ(decoded.as<Lost>().id(), 4301U);
  EXPECT_EQ(decoded.as<Lost>().lost(), 538U);
  EXPECT_EQ(decoded.as<Lost>().sample_id().id(), 14U);
  EXPECT_EQ(decoded.as<Lost>().sample_id().stream_id(), 15U);
}

TEST(RecordTrapT17Test, ThrottleFieldsAreSeparateFromSampleId) {
  RecordBuilder builder{PERF_RECORD_UNTHROTTLE};
  builder.u64(1).u64(2).u64(3);
  const DecodedRecord decoded{add_sample_id(builder), trailing(kTrailer)};
  EXPECT_EQ(decoded.as<Unthrottle>().time(), 1U);
  EXPECT_EQ(decoded.as<Unthrottle>().id(), 2U);
  EXPECT_EQ(decoded.as<Unthrottle>().stream_id(), 3U);
  EXPECT_EQ(decoded.as<Unthrottle>().sample_id().time(), 13U);
  RecordBuilder throttle{PERF_RECORD_THROTTLE};
  throttle.u64(1).u64(2).u64(3);
  EXPECT_EQ((DecodedRecord{throttle, sampling(0)}.as<Throttle>().stream_id()), 3U);
}

// One entry too many, and numbers so large that their product with an entry's size is small again.
TEST(RecordTrapT18Test, LengthsAreCheckedBeforeTheyAreMultiplied) {
  const auto malformed = [](std::uint64_t sample_type, const RecordBuilder& builder,
                            auto... format) {
    perf_event_attr attr = sampling(sample_type);
    attr.read_format = (std::uint64_t{0} | ... | format);
    return DecodedRecord{builder, attr}.malformed();
  };
  for (const std::uint64_t nr : {3ULL, 1ULL << 61, (1ULL << 61) + 1, ~0ULL, 1ULL << 32,
                                 (1ULL << 32) + 1, (1ULL << 16) + 1}) {
    RecordBuilder builder{PERF_RECORD_SAMPLE};
    builder.u64(nr).u64(0).u64(0);
    EXPECT_EQ(malformed(PERF_SAMPLE_CALLCHAIN, builder), "ips") << nr;
    EXPECT_EQ(malformed(PERF_SAMPLE_READ, builder, PERF_FORMAT_GROUP), "value") << nr;
    EXPECT_EQ(malformed(PERF_SAMPLE_BRANCH_STACK, builder), "lbr") << nr;
    const std::uint64_t bytes = nr == 3 ? 17 : nr;
    RecordBuilder sized{PERF_RECORD_SAMPLE};
    sized.u64(bytes).u64(0).u64(0);
    EXPECT_EQ(malformed(PERF_SAMPLE_STACK_USER, sized), "stack_user") << bytes;
    EXPECT_EQ(malformed(PERF_SAMPLE_AUX, sized), "aux") << bytes;
    RecordBuilder namespaces{PERF_RECORD_NAMESPACES};
    namespaces.u32(1).u32(2).u64(nr).u64(0).u64(0);
    EXPECT_EQ((DecodedRecord{namespaces, sampling(0)}.malformed()), "namespaces") << nr;
    RecordBuilder deferred{kCallchainDeferred};
    deferred.u64(1).u64(nr).u64(0).u64(0);
    EXPECT_EQ((DecodedRecord{deferred, sampling(0)}.malformed()), "ips") << nr;
  }
  EXPECT_EQ(malformed(PERF_SAMPLE_RAW, RecordBuilder{PERF_RECORD_SAMPLE}.u32(5).u32(0)), "raw");
  EXPECT_EQ(malformed(PERF_SAMPLE_RAW, RecordBuilder{PERF_RECORD_SAMPLE}.u32(~0U).u32(0)), "raw");
}

TEST(RecordTrapT19Test, UnknownTypeKeepsBytesBeforeSampleId) {
  RecordBuilder builder{23};
  builder.u64(1).u64(2);
  const DecodedRecord decoded{add_sample_id(builder), trailing(kTrailer)};
  const auto& unknown = decoded.as<Unknown>();
  EXPECT_EQ(unknown.header().type, 23U);
  EXPECT_EQ(unknown.rest().size(), 16U);
  EXPECT_EQ(unknown.sample_id().identifier(), 18U);
}

TEST(RecordTrapT19Test, ShortUnknownTypeHasNoSampleId) {
  const DecodedRecord decoded{RecordBuilder{23}.u64(1), trailing(kTrailer)};
  EXPECT_EQ(decoded.as<Unknown>().rest().size(), 8U);
  EXPECT_FALSE(decoded.as<Unknown>().sample_id().identifier());
  // perf.data's own types have no sample_id.
  RecordBuilder user{64};
  const DecodedRecord of_perf_data{add_sample_id(user), trailing(kTrailer)};
  EXPECT_FALSE(of_perf_data.as<Unknown>().sample_id().identifier());
}

TEST(RecordTrapT20Test, OnlyARecordThatStraddlesTheRingsEndIsCopied) {
  const std::vector<std::byte> record = RecordBuilder{PERF_RECORD_SAMPLE}.u64(7).bytes();
  std::array<std::byte, 16> scratch{};
  const Bytes all{record};
  EXPECT_EQ(whole(all, {}, scratch).data(), record.data());
  for (const std::size_t split : {std::size_t{1}, std::size_t{8}, std::size_t{15}}) {
    scratch = {};
    const Bytes joined = whole(all.first(split), all.subspan(split), scratch);
    EXPECT_EQ(joined.data(), scratch.data());
    EXPECT_EQ(hex(joined), hex(all));
  }
  // If the scratch overlaps the ring, the head is copied first.
  std::array<std::byte, 32> ring{};
  std::ranges::copy(record, ring.begin() + 8);
  const Bytes here{ring};
  EXPECT_EQ(hex(whole(here.subspan(8, 8), here.subspan(16, 8), ring)), hex(all));
  std::ranges::copy(record, ring.begin() + 8);
  EXPECT_EQ(hex(whole(here.subspan(8, 12), here.subspan(20, 4), std::span{ring}.subspan(12, 16))),
            hex(all.first(12)) + hex(all.subspan(8, 4)));
  EXPECT_TRUE(whole(all.first(8), all.subspan(8), std::span{scratch}.first(15)).empty());
  EXPECT_TRUE(whole(all.first(8), all.subspan(8), std::span{scratch}.first(7)).empty());
  EXPECT_EQ(kRecordMax, 65535U);
}

}  // namespace
}  // namespace perfring::record
