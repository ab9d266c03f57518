// Every record that is not a sample: its fields, and the field that is named if the bytes end
// early.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/record/counts.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/mappings.h"
#include "perfring/record/tasks.h"
#include "perfring/record/uapi.h"
#include "perfring/record/view.h"
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

// Where a field ends, in a record without sample_id.
struct End {
  const char* field;
  std::size_t at;
};

// Checks that the record, cut anywhere, names the field that does not fit; with sample_id as well.
void names_each_field(const RecordBuilder& builder, const std::vector<End>& ends) {
  const std::vector<std::byte> whole = builder.bytes();
  ASSERT_EQ(ends.back().at, whole.size());
  for (std::size_t size = sizeof(perf_event_header); size < whole.size(); ++size) {
    std::vector<std::byte> cut{whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)};
    const auto header_size = static_cast<std::uint16_t>(size);
    std::memcpy(&cut[6], &header_size, sizeof header_size);
    std::size_t i = 0;
    while (ends[i].at <= size) ++i;
    EXPECT_EQ((DecodedRecord{cut, sampling(0)}.malformed()), ends[i].field) << "of " << size;
    cut.resize(size + 8);
    const auto longer = static_cast<std::uint16_t>(size + 8);
    std::memcpy(&cut[6], &longer, sizeof longer);
    EXPECT_EQ((DecodedRecord{cut, trailing(PERF_SAMPLE_TIME)}.malformed()), ends[i].field);
  }
}

TEST(RecordMmapTest, HasTheUapisFields) {
  RecordBuilder builder{PERF_RECORD_MMAP};
  builder.u32(1).u32(2).u64(3).u64(4).u64(5).text("sixteen-bytes..");
  const DecodedRecord decoded{builder, sampling(0)};
  const auto& mmap = decoded.as<Mmap>();
  EXPECT_EQ(mmap.pid(), 1U);
  EXPECT_EQ(mmap.tid(), 2U);
  EXPECT_EQ(mmap.addr(), 3U);
  EXPECT_EQ(mmap.len(), 4U);
  EXPECT_EQ(mmap.pgoff(), 5U);
  EXPECT_EQ(mmap.filename(), "sixteen-bytes..");
  EXPECT_EQ(mmap.bytes().size(), 56U);
  names_each_field(
      builder,
      {{"pid", 12}, {"tid", 16}, {"addr", 24}, {"len", 32}, {"pgoff", 40}, {"filename", 56}});
}

TEST(RecordMmap2Test, NamesTheFieldThatIsTooShort) {
  RecordBuilder builder{PERF_RECORD_MMAP2};
  builder.u32(1).u32(2).u64(3).u64(4).u64(5).u32(6).u32(7).u64(8).u64(9).u32(10).u32(11).text(
      "1234567");
  EXPECT_EQ((DecodedRecord{builder, sampling(0)}.as<Mmap2>().addr()), 3U);
  EXPECT_EQ((DecodedRecord{builder, sampling(0)}.as<Mmap2>().pgoff()), 5U);
  EXPECT_EQ((DecodedRecord{builder, sampling(0)}.as<Mmap2>().flags()), 11U);
  names_each_field(builder, {{"pid", 12},
                             {"tid", 16},
                             {"addr", 24},
                             {"len", 32},
                             {"pgoff", 40},
                             {"maj", 44},
                             {"min", 48},
                             {"ino", 56},
                             {"ino_generation", 64},
                             {"prot", 68},
                             {"flags", 72},
                             {"filename", 80}});
}

TEST(RecordMmap2Test, ABuildIdThatIsCutOffIsNamed) {
  perf_event_attr attr{};
  attr.build_id = 1;
  for (std::size_t size = 0; size < 24; ++size) {
    RecordBuilder builder{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID};
    builder.u32(1).u32(2).u64(3).u64(4).u64(5).run(size, 1);
    EXPECT_EQ((DecodedRecord{builder, attr}.malformed()), size == 0 ? "build_id_size" : "build_id")
        << size;
  }
}

TEST(RecordCommTest, NamesTheFieldThatIsTooShort) {
  RecordBuilder builder{PERF_RECORD_COMM};
  builder.u32(1).u32(2).text("seven77");
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<Comm>().pid(), 1U);
  EXPECT_EQ(decoded.as<Comm>().tid(), 2U);
  EXPECT_FALSE(decoded.as<Comm>().is_exec());
  names_each_field(builder, {{"pid", 12}, {"tid", 16}, {"comm", 24}});
}

TEST(RecordForkTest, NamesTheFieldThatIsTooShort) {
  for (const std::uint32_t type : {PERF_RECORD_FORK, PERF_RECORD_EXIT}) {
    RecordBuilder builder{type};
    builder.u32(1).u32(2).u32(3).u32(4).u64(5);
    names_each_field(builder, {{"pid", 12}, {"ppid", 16}, {"tid", 20}, {"ptid", 24}, {"time", 32}});
  }
}

TEST(RecordLostTest, NamesTheFieldThatIsTooShort) {
  RecordBuilder builder{PERF_RECORD_LOST};
  builder.u64(1).u64(2);
  names_each_field(builder, {{"id", 16}, {"lost", 24}});
  RecordBuilder samples{PERF_RECORD_LOST_SAMPLES};
  samples.u64(3);
  EXPECT_EQ((DecodedRecord{samples, sampling(0)}.as<LostSamples>().lost()), 3U);
  names_each_field(samples, {{"lost", 16}});
}

TEST(RecordThrottleTest, NamesTheFieldThatIsTooShort) {
  for (const std::uint32_t type : {PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE}) {
    RecordBuilder builder{type};
    builder.u64(1).u64(2).u64(3);
    names_each_field(builder, {{"time", 16}, {"id", 24}, {"stream_id", 32}});
  }
}

TEST(RecordReadTest, NamesTheFieldThatIsTooShort) {
  RecordBuilder builder{PERF_RECORD_READ};
  builder.u32(1).u32(2).u64(3);
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<Read>().pid(), 1U);
  EXPECT_EQ(decoded.as<Read>().tid(), 2U);
  EXPECT_EQ(decoded.as<Read>().values()[0].value, 3U);
  names_each_field(builder, {{"pid", 12}, {"tid", 16}, {"value", 24}});
}

TEST(RecordAuxTest, HasTheUapisFields) {
  RecordBuilder builder{PERF_RECORD_AUX};
  builder.u64(1).u64(2).u64(3);
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<Aux>().aux_offset(), 1U);
  EXPECT_EQ(decoded.as<Aux>().aux_size(), 2U);
  EXPECT_EQ(decoded.as<Aux>().flags(), 3U);
  names_each_field(builder, {{"aux_offset", 16}, {"aux_size", 24}, {"flags", 32}});
  RecordBuilder id{PERF_RECORD_AUX_OUTPUT_HW_ID};
  id.u64(5);
  EXPECT_EQ((DecodedRecord{id, sampling(0)}.as<AuxOutputHwId>().hw_id()), 5U);
  names_each_field(id, {{"hw_id", 16}});
  RecordBuilder start{PERF_RECORD_ITRACE_START};
  start.u32(6).u32(7);
  EXPECT_EQ((DecodedRecord{start, sampling(0)}.as<ItraceStart>().pid()), 6U);
  EXPECT_EQ((DecodedRecord{start, sampling(0)}.as<ItraceStart>().tid()), 7U);
  names_each_field(start, {{"pid", 12}, {"tid", 16}});
}

TEST(RecordSwitchTest, NamesTheFieldThatIsTooShort) {
  RecordBuilder builder{PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT};
  builder.u32(1).u32(2);
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<SwitchCpuWide>().next_prev_pid(), 1U);
  EXPECT_EQ(decoded.as<SwitchCpuWide>().next_prev_tid(), 2U);
  EXPECT_TRUE(decoded.as<SwitchCpuWide>().is_out());
  EXPECT_FALSE(decoded.as<SwitchCpuWide>().is_preempted());
  names_each_field(builder, {{"next_prev_pid", 12}, {"next_prev_tid", 16}});
}

TEST(RecordNamespacesTest, HasALinkForEachNamespace) {
  RecordBuilder builder{PERF_RECORD_NAMESPACES};
  builder.u32(1).u32(2).u64(2).u64(3).u64(4).u64(5).u64(6);
  const DecodedRecord decoded{builder, sampling(0)};
  const auto& namespaces = decoded.as<Namespaces>();
  EXPECT_EQ(namespaces.pid(), 1U);
  EXPECT_EQ(namespaces.tid(), 2U);
  ASSERT_EQ(namespaces.size(), 2U);
  EXPECT_EQ(namespaces[0].dev, 3U);
  EXPECT_EQ(namespaces[1].inode, 6U);
  names_each_field(builder, {{"pid", 12}, {"tid", 16}, {"nr_namespaces", 24}, {"namespaces", 56}});
}

TEST(RecordKsymbolTest, HasTheUapisFields) {
  RecordBuilder builder{PERF_RECORD_KSYMBOL};
  builder.u64(1).u32(2).u16(PERF_RECORD_KSYMBOL_TYPE_BPF).u16(1).text("bpf_prg");
  const DecodedRecord decoded{builder, sampling(0)};
  const auto& symbol = decoded.as<Ksymbol>();
  EXPECT_EQ(symbol.addr(), 1U);
  EXPECT_EQ(symbol.len(), 2U);
  EXPECT_EQ(symbol.ksym_type(), 1U);
  EXPECT_EQ(symbol.flags(), 1U);
  EXPECT_TRUE(symbol.is_unregistered());
  EXPECT_EQ(symbol.name(), "bpf_prg");
  names_each_field(builder,
                   {{"addr", 16}, {"len", 20}, {"ksym_type", 22}, {"flags", 24}, {"name", 32}});
}

TEST(RecordBpfEventTest, HasTheUapisFields) {
  RecordBuilder builder{PERF_RECORD_BPF_EVENT};
  builder.u16(PERF_BPF_EVENT_PROG_UNLOAD).u16(2).u32(3).run(8, 0x10);
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<BpfEvent>().type(), 2U);
  EXPECT_EQ(decoded.as<BpfEvent>().flags(), 2U);
  EXPECT_EQ(decoded.as<BpfEvent>().id(), 3U);
  EXPECT_EQ(hex(decoded.as<BpfEvent>().tag()), "1011121314151617");
  names_each_field(builder, {{"type", 10}, {"flags", 12}, {"id", 16}, {"tag", 24}});
}

TEST(RecordCgroupTest, HasTheUapisFields) {
  RecordBuilder builder{PERF_RECORD_CGROUP};
  builder.u64(348).text("/a/cgrp");
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<Cgroup>().id(), 348U);
  EXPECT_EQ(decoded.as<Cgroup>().path(), "/a/cgrp");
  names_each_field(builder, {{"id", 16}, {"path", 24}});
}

TEST(RecordTextPokeTest, OldBytesPrecedeNewBytes) {
  RecordBuilder builder{PERF_RECORD_TEXT_POKE};
  builder.u64(1).u16(5).u16(3).run(5, 0x10).run(3, 0x20);
  const DecodedRecord decoded{builder, sampling(0)};
  const auto& poke = decoded.as<TextPoke>();
  EXPECT_EQ(poke.addr(), 1U);
  EXPECT_EQ(poke.old_len(), 5U);
  EXPECT_EQ(poke.new_len(), 3U);
  EXPECT_EQ(hex(poke.old_bytes()), "1011121314");
  EXPECT_EQ(hex(poke.new_bytes()), "202122");
  names_each_field(builder, {{"addr", 16}, {"old_len", 18}, {"new_len", 20}, {"bytes", 28}});
}

TEST(RecordTextPokeTest, PaddingIsNotRest) {
  RecordBuilder builder{PERF_RECORD_TEXT_POKE};
  builder.u64(1).u16(5).u16(5).run(10, 0x10).u16(0);
  add_sample_id(builder);
  EXPECT_TRUE((DecodedRecord{builder, trailing(kTrailer)}.as<TextPoke>().rest().empty()));
  RecordBuilder later{PERF_RECORD_TEXT_POKE};
  later.u64(1).u16(5).u16(5).run(10, 0x10).u16(0).u64(9);
  EXPECT_EQ((DecodedRecord{later, sampling(0)}.as<TextPoke>().rest().size()), 8U)
      << "the bytes after it";
  RecordBuilder unpadded{PERF_RECORD_TEXT_POKE};
  unpadded.u64(1).u16(5).u16(5).run(10, 0x10);
  EXPECT_EQ((DecodedRecord{unpadded, sampling(0)}.as<TextPoke>().rest().size()), 0U);
}

TEST(RecordCallchainDeferredTest, HasTheCookieOfTheSamplesItCompletes) {
  RecordBuilder builder{kCallchainDeferred};
  builder.u64(0xc00c1e).u64(2).u64(3).u64(4);
  const DecodedRecord decoded{builder, sampling(0)};
  EXPECT_EQ(decoded.as<CallchainDeferred>().cookie(), 0xc00c1eU);
  EXPECT_EQ(decoded.as<CallchainDeferred>().callchain().ips()[1], 4U);
  names_each_field(builder, {{"cookie", 16}, {"nr", 24}, {"ips", 40}});
}

TEST(RecordDecodeTest, WithoutRoomForSampleIdARecordIsMalformed) {
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SWITCH}.u64(1), trailing(kTrailer)};
  EXPECT_EQ(decoded.malformed(), "sample_id");
}

// The kernel appends sample_id to every record of its own. Types from 64 on are those of tools.
TEST(RecordDecodeTest, UnknownTypeHasSampleIdIfItFits) {
  for (std::size_t size = 0; size <= 56; ++size) {
    const bool has_room = size >= 48;
    const DecodedRecord kernels{RecordBuilder{63}.run(size, 1), trailing(kTrailer)};
    EXPECT_EQ(kernels.as<Unknown>().sample_id_size(), has_room ? 48U : 0U) << size;
    EXPECT_EQ(kernels.as<Unknown>().rest().size(), has_room ? size - 48 : size) << size;
    EXPECT_EQ(kernels.as<Unknown>().sample_id().identifier().has_value(), has_room) << size;
    const DecodedRecord tools{RecordBuilder{64}.run(size, 1), trailing(kTrailer)};
    EXPECT_EQ(tools.as<Unknown>().sample_id_size(), 0U) << size;
    EXPECT_EQ(tools.as<Unknown>().rest().size(), size);
  }
}

TEST(RecordDecodeTest, ASizeThatCannotBeIsMalformed) {
  const Layout layout{sampling(0)};
  const std::vector<std::byte> record = RecordBuilder{PERF_RECORD_LOST}.u64(1).u64(2).bytes();
  for (std::size_t size = 0; size < record.size(); ++size) {
    const testing::Guarded cut{Bytes{record}.first(size)};
    const Any any = decode(cut.bytes(), layout);
    ASSERT_TRUE(std::holds_alternative<Malformed>(any)) << size;
    EXPECT_STREQ(std::get<Malformed>(any).field, size < 8 ? "header" : "size");
    EXPECT_EQ(std::get<Malformed>(any).bytes.size(), size);
    EXPECT_EQ(std::get<Malformed>(any).header.type, size < 8 ? 0U : unsigned{PERF_RECORD_LOST});
  }
  for (std::uint16_t size = 0; size < 8; ++size) {
    std::vector<std::byte> small = record;
    std::memcpy(&small[6], &size, sizeof size);
    EXPECT_EQ((DecodedRecord{small, sampling(0)}.malformed()), "size");
  }
}

TEST(RecordDecodeTest, BytesAfterTheRecordAreNotItsOwn) {
  std::vector<std::byte> record = RecordBuilder{PERF_RECORD_SWITCH}.u64(5).bytes();
  record.resize(record.size() + 8, std::byte{0xff});
  const DecodedRecord decoded{record, trailing(PERF_SAMPLE_TIME)};
  EXPECT_EQ(decoded.as<Switch>().sample_id().time(), 5U);
  EXPECT_EQ(decoded.as<Switch>().bytes().size(), 16U);
}

}  // namespace
}  // namespace perfring::record
