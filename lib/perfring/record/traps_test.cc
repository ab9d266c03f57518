// The traps T1 to T9 of harness/RECORD_FACTS.md, one test each (length_traps_test.cc has the
// others). Records are built by hand; harness/record compares genuine ones.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstdint>
#include <string_view>

#include "perfring/record/counts.h"
#include "perfring/record/mappings.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
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

TEST(RecordTrapT1Test, SampleFieldsFollowKernelOrderNotBitOrder) {
  perf_event_attr attr = sampling((1U << 24) - 1);
  attr.read_format = 0;
  attr.sample_regs_user = 1;
  attr.sample_regs_intr = 2;
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(100).u64(101).u32(102).u32(103).u64(104).u64(105).u64(106).u64(107);
  builder.u32(108).u32(109).u64(110).u64(111);                   // cpu, res, period, READ
  builder.u64(1).u64(112).u32(12).run(12, 0x30);                 // callchain, raw
  builder.u64(1).u64(113).u64(114).u64(0);                       // branch stack
  builder.u64(2).u64(115).u64(8).run(8, 0x50).u64(7);            // regs_user, stack_user
  builder.u64(116).u64(117).u64(118).u64(2).u64(119);            // weight to regs_intr
  builder.u64(120).u64(121).u64(122).u64(123).u64(8).run(8, 9);  // phys_addr to aux
  const DecodedRecord decoded{builder, attr};
  const auto& s = decoded.as<Sample>();
  EXPECT_EQ(s.identifier(), 100U);
  EXPECT_EQ(s.ip(), 101U);
  EXPECT_EQ(s.pid(), 102U);
  EXPECT_EQ(s.tid(), 103U);
  EXPECT_EQ(s.time(), 104U);
  EXPECT_EQ(s.addr(), 105U);
  EXPECT_EQ(s.id(), 106U);
  EXPECT_EQ(s.stream_id(), 107U);
  EXPECT_EQ(s.cpu(), 108U);
  EXPECT_EQ(s.res(), 109U);
  EXPECT_EQ(s.period(), 110U);
  EXPECT_EQ((*s.values())[0].value, 111U);
  EXPECT_EQ(s.callchain()->ips()[0], 112U);
  EXPECT_EQ(hex(*s.raw()), "303132333435363738393a3b");
  EXPECT_EQ((*s.branch_stack())[0].from, 113U);
  EXPECT_EQ((*s.branch_stack())[0].to, 114U);
  EXPECT_EQ(s.regs_user()->regs()[0], 115U);
  EXPECT_EQ(hex(s.stack_user()->data), "5051525354555657");
  EXPECT_EQ(s.stack_user()->dyn_size, 7U);
  EXPECT_EQ(s.weight()->full, 116U);
  EXPECT_EQ(s.data_src()->val, 117U);
  EXPECT_EQ(s.transaction(), 118U);
  EXPECT_EQ(s.regs_intr()->reg(1), 119U);
  EXPECT_EQ(s.phys_addr(), 120U);
  EXPECT_EQ(s.cgroup(), 121U);
  EXPECT_EQ(s.data_page_size(), 122U);
  EXPECT_EQ(s.code_page_size(), 123U);
  EXPECT_EQ(hex(*s.aux()), "090a0b0c0d0e0f10");
  EXPECT_TRUE(s.rest().empty());
}

TEST(RecordTrapT2Test, RawHasTheBytesOfItsSizePaddingIncluded) {
  const DecodedRecord none{RecordBuilder{PERF_RECORD_SAMPLE}.u32(4).u32(0),
                           sampling(PERF_SAMPLE_RAW)};
  EXPECT_EQ(hex(none.as<Sample>().raw().value()), "00000000");
  const DecodedRecord padded{RecordBuilder{PERF_RECORD_SAMPLE}.u32(20).run(20, 1),
                             sampling(PERF_SAMPLE_RAW)};
  EXPECT_EQ(padded.as<Sample>().raw()->size(), 20U);
}

TEST(RecordTrapT3Test, SampleIdIsAtTheRecordsEndWhateverIsBeforeIt) {
  RecordBuilder builder{PERF_RECORD_FORK};
  builder.u32(1).u32(2).u32(3).u32(4).u64(5).run(16, 0xf0);
  const DecodedRecord decoded{add_sample_id(builder), trailing(kTrailer)};
  const auto& fork = decoded.as<Fork>();
  EXPECT_EQ(fork.pid(), 1U);
  EXPECT_EQ(fork.ppid(), 2U);
  EXPECT_EQ(fork.tid(), 3U);
  EXPECT_EQ(fork.ptid(), 4U);
  EXPECT_EQ(fork.time(), 5U);
  EXPECT_EQ(fork.rest().size(), 16U);
  EXPECT_EQ(fork.sample_id().pid(), 11U);
  EXPECT_EQ(fork.sample_id().tid(), 12U);
  EXPECT_EQ(fork.sample_id().time(), 13U);
  EXPECT_EQ(fork.sample_id().id(), 14U);
  EXPECT_EQ(fork.sample_id().stream_id(), 15U);
  EXPECT_EQ(fork.sample_id().cpu(), 16U);
  EXPECT_EQ(fork.sample_id().res(), 17U);
  EXPECT_EQ(fork.sample_id().identifier(), 18U);
}

TEST(RecordTrapT3Test, ASampleHasNoSampleId) {
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SAMPLE}.u64(7), trailing(PERF_SAMPLE_TIME)};
  EXPECT_EQ(decoded.as<Sample>().time(), 7U);
}

TEST(RecordTrapT4Test, AnMmapsSampleIdIsNotPartOfItsFilename) {
  RecordBuilder builder{PERF_RECORD_MMAP};
  builder.u32(1).u32(2).u64(3).u64(4).u64(5).text("/lib/a.so");
  const DecodedRecord decoded{add_sample_id(builder), trailing(kTrailer)};
  EXPECT_EQ(decoded.as<Mmap>().filename(), "/lib/a.so");
  EXPECT_EQ(decoded.as<Mmap>().sample_id().identifier(), 18U);
}

TEST(RecordTrapT4Test, AFilenameDoesNotRunOnIntoSampleId) {
  RecordBuilder builder{PERF_RECORD_MMAP};
  builder.u32(1).u32(2).u64(3).u64(4).u64(5).run(8, 'a').u64(0);
  EXPECT_EQ((DecodedRecord{builder, trailing(PERF_SAMPLE_TIME)}.malformed()), "filename");
}

TEST(RecordTrapT5Test, ARecordWithoutABodyIsLegal) {
  const DecodedRecord change{RecordBuilder{PERF_RECORD_SWITCH}, sampling(0)};
  EXPECT_FALSE(change.as<Switch>().is_out());
  const DecodedRecord unknown{RecordBuilder{4711}, sampling(0)};
  EXPECT_TRUE(unknown.as<Unknown>().rest().empty());
  const DecodedRecord sample{RecordBuilder{PERF_RECORD_SAMPLE}, sampling(0)};
  EXPECT_FALSE(sample.as<Sample>().ip());
}

TEST(RecordTrapT6Test, MiscMeansSomethingElseInEachType) {
  constexpr std::uint16_t kBoth = 1U << 13 | 1U << 14 | PERF_RECORD_MISC_USER;
  const DecodedRecord change{RecordBuilder{PERF_RECORD_SWITCH, kBoth}, sampling(0)};
  EXPECT_TRUE(change.as<Switch>().is_out());
  EXPECT_TRUE(change.as<Switch>().is_preempted());
  EXPECT_EQ(change.as<Switch>().cpumode(), unsigned{PERF_RECORD_MISC_USER});
  const DecodedRecord comm{RecordBuilder{PERF_RECORD_COMM, kBoth}.u32(1).u32(1).text("a"),
                           sampling(0)};
  EXPECT_TRUE(comm.as<Comm>().is_exec());
  const DecodedRecord sample{RecordBuilder{PERF_RECORD_SAMPLE, kBoth}, sampling(0)};
  EXPECT_TRUE(sample.as<Sample>().exact_ip());
  const DecodedRecord other{RecordBuilder{PERF_RECORD_SAMPLE, 1U << 13}, sampling(0)};
  EXPECT_FALSE(other.as<Sample>().exact_ip());
  const DecodedRecord in{RecordBuilder{PERF_RECORD_SWITCH, 1U << 14}, sampling(0)};
  EXPECT_FALSE(in.as<Switch>().is_preempted());
  RecordBuilder map{PERF_RECORD_MMAP, kBoth};
  map.u32(1).u32(2).u64(3).u64(4).u64(5).text("a");
  EXPECT_TRUE((DecodedRecord{map, sampling(0)}.as<Mmap>().is_data()));
}

RecordBuilder mmap2(std::uint16_t misc) {
  RecordBuilder builder{PERF_RECORD_MMAP2, misc};
  builder.u32(1).u32(2).u64(3).u64(4).u64(5);
  return builder;
}

TEST(RecordTrapT7Test, ABuildIdStandsWhereTheFileDoes) {
  perf_event_attr attr{};
  attr.build_id = 1;
  RecordBuilder builder = mmap2(PERF_RECORD_MISC_MMAP_BUILD_ID);
  builder.u8(18).u8(0).u16(0).run(20, 0xa0).u32(6).u32(7).text("a");
  const DecodedRecord decoded{builder, attr};
  const auto& map = decoded.as<Mmap2>();
  EXPECT_EQ(hex(map.build_id().value()), "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1");
  EXPECT_FALSE(map.maj() || map.min() || map.ino() || map.ino_generation());
  EXPECT_EQ(map.prot(), 6U);
  EXPECT_EQ(map.flags(), 7U);
  EXPECT_EQ(map.filename(), "a");
}

// R14: the kernel may set the bit for an earlier listener and not clear it.
TEST(RecordTrapT7Test, MiscAloneIsNotBelieved) {
  RecordBuilder builder = mmap2(PERF_RECORD_MISC_MMAP_BUILD_ID);
  builder.u32(254).u32(1).u64(8).u64(9).u32(6).u32(7).text("a");
  const DecodedRecord decoded{builder, sampling(0)};
  const auto& map = decoded.as<Mmap2>();
  EXPECT_FALSE(map.build_id());
  EXPECT_EQ(map.maj(), 254U);
  EXPECT_EQ(map.min(), 1U);
  EXPECT_EQ(map.ino(), 8U);
  EXPECT_EQ(map.ino_generation(), 9U);
}

TEST(RecordTrapT7Test, TheAttributeAloneIsNotBelieved) {
  perf_event_attr attr{};
  attr.build_id = 1;
  RecordBuilder builder = mmap2(0);
  builder.u32(254).u32(1).u64(8).u64(9).u32(6).u32(7).text("//anon");
  const DecodedRecord decoded{builder, attr};
  EXPECT_FALSE(decoded.as<Mmap2>().build_id());
  EXPECT_EQ(decoded.as<Mmap2>().ino(), 8U);
}

TEST(RecordTrapT7Test, ABuildIdOfMoreThan20BytesIsMalformed) {
  perf_event_attr attr{};
  attr.build_id = 1;
  for (const std::uint8_t size : {std::uint8_t{20}, std::uint8_t{21}, std::uint8_t{255}}) {
    RecordBuilder builder = mmap2(PERF_RECORD_MISC_MMAP_BUILD_ID);
    builder.u8(size).u8(0).u16(0).run(20, 0xa0).u32(6).u32(7).text("a");
    EXPECT_EQ((DecodedRecord{builder, attr}.malformed()), size <= 20 ? "" : "build_id_size");
  }
}

TEST(RecordTrapT8Test, PaddingAfterStringNulIsIgnored) {
  for (const std::string_view name : {"", "a", "seven77", "eight888", "fifteen15fiftee"}) {
    RecordBuilder builder{PERF_RECORD_COMM};
    builder.u32(1).u32(2).text(name);
    const DecodedRecord decoded{builder, sampling(0)};
    EXPECT_EQ(decoded.as<Comm>().comm(), name);
    EXPECT_TRUE(decoded.as<Comm>().rest().empty());
    builder.u64(0x1122);
    const DecodedRecord longer{builder, sampling(0)};
    EXPECT_EQ(longer.as<Comm>().comm(), name);
    EXPECT_EQ(longer.as<Comm>().rest().size(), 8U) << name;
  }
}

TEST(RecordTrapT9Test, AnExitHasAParentOfItsOwn) {
  RecordBuilder builder{PERF_RECORD_EXIT};
  builder.u32(1).u32(24221).u32(3).u32(24222).u64(5);
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<Exit>().ppid(), 24221U);
  EXPECT_EQ(decoded.as<Exit>().ptid(), 24222U);
}

}  // namespace
}  // namespace perfring::record
