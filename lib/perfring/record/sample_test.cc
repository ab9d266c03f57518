// Sample: the field that is named if the bytes end early, and single fields. Misuse of views and
// layouts: everything that their types allow and nobody intends.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "perfring/record/bytes.h"
#include "perfring/record/callchain.h"
#include "perfring/record/layout.h"
#include "perfring/record/read_values.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/record/uapi.h"
#include "perfring/record/view.h"
#include "perfring/testing/hand_made_records.h"

namespace perfring::record {
namespace {

using testing::DecodedRecord;
using testing::hex;
using testing::RecordBuilder;
using testing::sampling;
using testing::trailing;

struct Part {
  std::uint64_t bit;
  const char* field;
  std::size_t size;
};

// One of each field, in the kernel's order (T1), with its size in a record in which all lengths are
// 0 except those of the registers.
const std::vector<Part>& parts() {
  static const std::vector<Part> all{{PERF_SAMPLE_IDENTIFIER, "identifier", 8},
                                     {PERF_SAMPLE_IP, "ip", 8},
                                     {PERF_SAMPLE_TID, "pid", 8},
                                     {PERF_SAMPLE_TIME, "time", 8},
                                     {PERF_SAMPLE_ADDR, "addr", 8},
                                     {PERF_SAMPLE_ID, "id", 8},
                                     {PERF_SAMPLE_STREAM_ID, "stream_id", 8},
                                     {PERF_SAMPLE_CPU, "cpu", 8},
                                     {PERF_SAMPLE_PERIOD, "period", 8},
                                     {PERF_SAMPLE_READ, "value", 8},
                                     {PERF_SAMPLE_CALLCHAIN, "nr", 8},
                                     {PERF_SAMPLE_RAW, "size", 4},
                                     {PERF_SAMPLE_BRANCH_STACK, "nr", 8},
                                     {PERF_SAMPLE_REGS_USER, "regs_user", 8},
                                     {PERF_SAMPLE_STACK_USER, "size", 8},
                                     {PERF_SAMPLE_WEIGHT, "weight", 8},
                                     {PERF_SAMPLE_DATA_SRC, "data_src", 8},
                                     {PERF_SAMPLE_TRANSACTION, "transaction", 8},
                                     {PERF_SAMPLE_REGS_INTR, "regs_intr", 8},
                                     {PERF_SAMPLE_PHYS_ADDR, "phys_addr", 8},
                                     {PERF_SAMPLE_CGROUP, "cgroup", 8},
                                     {PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size", 8},
                                     {PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size", 8},
                                     {PERF_SAMPLE_AUX, "size", 8}};
  return all;
}

RecordBuilder zeroes(std::size_t size) {
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  for (std::size_t i = 0; i < size; ++i) builder.u8(0);
  return builder;
}

TEST(RecordSampleTest, NamesTheFirstFieldThatDoesNotFit) {
  std::uint64_t all = 0;
  for (const Part& part : parts()) all |= part.bit;
  std::size_t at = 0;
  for (const Part& part : parts()) {
    for (std::size_t size = at; size < at + part.size; ++size) {
      EXPECT_EQ((DecodedRecord{zeroes(size), sampling(all)}.malformed()), part.field) << size;
    }
    at += part.size;
  }
  EXPECT_EQ((DecodedRecord{zeroes(at), sampling(all)}.malformed()), "");
}

TEST(RecordSampleTest, EachFieldAloneFollowsTheHeader) {
  for (const Part& part : parts()) {
    EXPECT_EQ((DecodedRecord{zeroes(part.size - 1), sampling(part.bit)}.malformed()), part.field);
    const DecodedRecord decoded{zeroes(part.size + 3), sampling(part.bit)};
    EXPECT_EQ(decoded.as<Sample>().rest().size(), 3U) << part.field;
  }
}

TEST(RecordSampleTest, FieldsThatAreNotSelectedAreAbsent) {
  const DecodedRecord decoded{zeroes(0), sampling(0)};
  const auto& s = decoded.as<Sample>();
  EXPECT_FALSE(s.identifier() || s.ip() || s.pid() || s.tid() || s.time() || s.addr() || s.id());
  EXPECT_FALSE(s.stream_id() || s.cpu() || s.res() || s.period() || s.values() || s.callchain());
  EXPECT_FALSE(s.raw() || s.branch_stack() || s.regs_user() || s.stack_user() || s.weight());
  EXPECT_FALSE(s.data_src() || s.transaction() || s.regs_intr() || s.phys_addr() || s.cgroup());
  EXPECT_FALSE(s.data_page_size() || s.code_page_size() || s.aux());
}

TEST(RecordSampleTest, RegistersAreAsManyAsTheMaskHasBits) {
  perf_event_attr attr = sampling(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR);
  attr.sample_regs_user = ~0ULL;  // XMM registers have two bits each
  attr.sample_regs_intr = 1ULL << 63;
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(PERF_SAMPLE_REGS_ABI_64);
  for (std::uint64_t i = 0; i < 64; ++i) builder.u64(100 + i);
  builder.u64(PERF_SAMPLE_REGS_ABI_64).u64(7);
  const DecodedRecord decoded{builder, attr};
  EXPECT_EQ(decoded.as<Sample>().regs_user()->regs().size(), 64U);
  EXPECT_EQ(decoded.as<Sample>().regs_user()->reg(0), 100U);
  EXPECT_EQ(decoded.as<Sample>().regs_user()->reg(63), 163U);
  EXPECT_EQ(decoded.as<Sample>().regs_intr()->reg(63), 7U);
  EXPECT_FALSE(decoded.as<Sample>().regs_intr()->reg(62));
}

// BITS(MISPRED | CYCLES...) is the uapi's struct, with bit fields in the machine's own order.
TEST(RecordSampleTest, ABranchsFlagsAreTheUapisBitFields) {
  perf_branch_entry entry{};
  entry.from = 1;
  entry.to = 2;
  entry.mispred = 1;
  entry.cycles = 0xabc;
  entry.type = 9;
  entry.spec = 2;
  entry.priv = 3;
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(1);
  for (const std::byte byte : std::as_bytes(std::span{&entry, 1})) {
    builder.u8(std::to_integer<std::uint8_t>(byte));
  }
  const DecodedRecord decoded{builder, sampling(PERF_SAMPLE_BRANCH_STACK)};
  const perf_branch_entry branch = (*decoded.as<Sample>().branch_stack())[0];
  EXPECT_EQ(branch.from, 1U);
  EXPECT_EQ(branch.to, 2U);
  EXPECT_EQ(branch.mispred, 1U);
  EXPECT_EQ(branch.predicted, 0U);
  EXPECT_EQ(branch.cycles, 0xabcU);
  EXPECT_EQ(branch.type, 9U);
  EXPECT_EQ(branch.spec, 2U);
  EXPECT_EQ(branch.priv, 3U);
}

// T14: the record's end tells whether hw_idx is there, unless both readings fit.
TEST(RecordSampleTest, AnEmptyBranchStackIsTakenByTheRecordsEnd) {
  perf_event_attr attr = sampling(PERF_SAMPLE_BRANCH_STACK);
  attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX;
  const DecodedRecord later{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0).u64(5).u64(6), attr};
  EXPECT_EQ(later.as<Sample>().branch_stack()->hw_idx(), 5U) << "it is of none";
  EXPECT_EQ(later.as<Sample>().rest().size(), 8U);
  attr.sample_type |= PERF_SAMPLE_AUX;
  const DecodedRecord without{RecordBuilder{PERF_RECORD_SAMPLE}.u64(0).u64(16).u64(0).u64(9), attr};
  EXPECT_FALSE(without.as<Sample>().branch_stack()->hw_idx());
  EXPECT_EQ(without.as<Sample>().aux()->size(), 16U);
}

TEST(RecordSampleTest, FieldsOfUnknownBitsAreKept) {
  const std::uint64_t type = PERF_SAMPLE_IP | 1ULL << 40;
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_SAMPLE}.u64(1).u64(2), sampling(type)};
  EXPECT_EQ(decoded.as<Sample>().ip(), 1U);
  EXPECT_EQ(hex(decoded.as<Sample>().rest()).size(), 16U);
  EXPECT_EQ(decoded.as<Sample>().layout().sample_type(), type);
}

// A raw size that is not a multiple of 8 puts all following fields at odd addresses.
TEST(RecordSampleTest, FieldsMayBeUnaligned) {
  const DecodedRecord decoded{
      RecordBuilder{PERF_RECORD_SAMPLE}.u32(3).run(3, 1).u64(0x1122334455667788).u64(1).u8(9),
      sampling(PERF_SAMPLE_RAW | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_AUX)};
  EXPECT_EQ(decoded.as<Sample>().raw()->size(), 3U);
  EXPECT_EQ(decoded.as<Sample>().weight()->full, 0x1122334455667788U);
  EXPECT_EQ(hex(*decoded.as<Sample>().aux()), "09");
}

// The fields of every read_format are found, at both ends of the bytes.
TEST(RecordReadValuesTest, EveryReadFormatTakesAsManyBytesAsItsFieldsDo) {
  for (std::uint64_t format = 0; format < 32; ++format) {
    const bool group = (format & PERF_FORMAT_GROUP) != 0;
    const std::size_t nr = group ? 2 : 1;
    const bool id = (format & PERF_FORMAT_ID) != 0;
    const bool lost = (format & PERF_FORMAT_LOST) != 0;
    const std::size_t times = (format & 1) + (format >> 1 & 1);
    const std::size_t words =
        (group ? 1 : 0) + times + nr * (1 + std::size_t{id} + std::size_t{lost});
    std::vector<std::uint64_t> buffer(words, 5);
    if (group) buffer[0] = 2;
    const auto bytes = std::as_bytes(std::span{buffer});
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const testing::Guarded cut{bytes.first(size)};
      EXPECT_FALSE(ReadValues::over(cut.bytes(), format)) << format << ' ' << size;
    }
    const testing::Guarded all{bytes};
    const auto values = ReadValues::over(all.bytes(), format);
    ASSERT_TRUE(values) << format;
    EXPECT_EQ(values->size(), nr);
    EXPECT_EQ(values->is_group(), group);
    EXPECT_EQ((*values)[nr - 1].value, 5U);
    EXPECT_EQ((*values)[nr - 1].id.has_value(), id);
    EXPECT_EQ((*values)[nr - 1].lost.has_value(), lost);
    EXPECT_EQ(values->time_enabled().has_value(), (format & 1) != 0);
    EXPECT_EQ(values->time_running().has_value(), (format & 2) != 0);
  }
}

TEST(RecordMisuseTest, AnIndexOutOfRangeEndsTheProgram) {
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(1).u64(100);                                  // a group of one
  builder.u64(2).u64(101).u64(102);                         // ips
  builder.u64(1).u64(0).u64(113).u64(114).u64(0).u64(115);  // a branch, after hw_idx
  perf_event_attr attr =
      sampling(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK);
  attr.read_format = PERF_FORMAT_GROUP;
  attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX | kBranchCounters;
  const DecodedRecord decoded{builder, attr};
  const auto& sample = decoded.as<Sample>();
  EXPECT_EQ((*sample.values())[0].value, 100U);
  EXPECT_EQ(sample.callchain()->ips()[1], 102U);
  EXPECT_EQ((*sample.branch_stack())[0].to, 114U);
  EXPECT_EQ(sample.branch_stack()->counters()[0], 115U);
  const DecodedRecord of_namespaces{
      RecordBuilder{PERF_RECORD_NAMESPACES}.u32(1).u32(2).u64(1).u64(3).u64(4), sampling(0)};
  const auto& namespaces = of_namespaces.as<Namespaces>();
  EXPECT_EQ(namespaces[0].inode, 4U);
  for (const std::size_t beyond : {std::size_t{2}, ~std::size_t{0}, ~std::size_t{0} / 8 + 1}) {
    EXPECT_DEATH(static_cast<void>((*sample.values())[beyond - 1]), "");
    EXPECT_DEATH(static_cast<void>(sample.callchain()->ips()[beyond]), "");
    EXPECT_DEATH(static_cast<void>(sample.callchain()->ips().address(beyond)), "");
    EXPECT_DEATH(static_cast<void>((*sample.branch_stack())[beyond - 1]), "");
    EXPECT_DEATH(static_cast<void>(sample.branch_stack()->counters()[beyond - 1]), "");
    EXPECT_DEATH(static_cast<void>(namespaces[beyond - 1]), "");
  }
  EXPECT_DEATH(static_cast<void>(U64s{}[0]), "");
}

TEST(RecordMisuseTest, HandMadeViewsReadNothingBeyondTheirWords) {
  const std::array<std::uint64_t, 2> words{5, 6};
  const U64s two{reinterpret_cast<const std::byte*>(words.data()), words.size()};
  const Regs regs{PERF_SAMPLE_REGS_ABI_64, 0b1011, two};  // one register more than words
  EXPECT_EQ(regs.reg(0), 5U);
  EXPECT_EQ(regs.reg(1), 6U);
  EXPECT_FALSE(regs.reg(3));
  for (const unsigned bit : {2U, 63U, 64U, ~0U}) EXPECT_FALSE(regs.reg(bit)) << bit;
  EXPECT_FALSE((Regs{PERF_SAMPLE_REGS_ABI_64, 0b101, two}.reg(1))) << "not the next one's word";
  EXPECT_FALSE(SampleId{}.time());
  EXPECT_FALSE(SampleId{}.identifier());
  EXPECT_EQ(Frames{U64s{}}.begin(), Frames{U64s{}}.end());
  EXPECT_FALSE(Callchain{U64s{}}.deferred_cookie());
  const std::uint64_t marker = kContextUserDeferred;
  const U64s cut_off{reinterpret_cast<const std::byte*>(&marker), 1};
  EXPECT_FALSE(Callchain{cut_off}.deferred_cookie()) << "it ends before the cookie";
  EXPECT_TRUE((StackUser{{}, ~std::uint64_t{0}}.dumped().empty()));
}

TEST(RecordMisuseTest, ALayoutOfNoEventHasNothing) {
  const Layout none;
  EXPECT_EQ(none.sample_type() | none.read_format() | none.branch_sample_type(), 0U);
  EXPECT_EQ(none.sample_regs_user() | none.sample_regs_intr(), 0U);
  EXPECT_FALSE(none.sample_id_all() || none.build_id());
  EXPECT_EQ(none.sample_id_size(), 0U);
  EXPECT_EQ(none.fixed_end(), sizeof(perf_event_header));
}

TEST(RecordMisuseTest, ALayoutHasNoFieldOfAnotherNumber) {
  const Layout layout{trailing(testing::kTrailer)};
  for (const int number : {9, 255, -1}) {
    EXPECT_EQ(layout.at(Layout::Fixed{number}), 0U) << number;
    EXPECT_EQ(layout.at(Layout::Trailer{number}), Layout::kAbsent) << number;
  }
  EXPECT_EQ(layout.at(Layout::Trailer{6}), Layout::kAbsent);
  EXPECT_STREQ(layout.cut_off_at(0), "identifier");
  EXPECT_STREQ(layout.cut_off_at(~std::size_t{0}), "period") << "the last";
}

TEST(RecordMisuseTest, ReadValuesOfTooFewBytesAreRefused) {
  constexpr std::uint64_t kUnknownBits = ~std::uint64_t{0x1f};
  std::vector<std::byte> bytes(1 << 17);
  EXPECT_FALSE(ReadValues::over({}, 0));
  EXPECT_EQ(ReadValues::over(bytes, kUnknownBits)->size(), 1U);
  EXPECT_EQ(ReadValues::over(bytes, PERF_FORMAT_GROUP)->size(), 0U);
  const auto group_of = [&bytes](std::uint64_t members) {
    std::memcpy(bytes.data(), &members, sizeof members);
    return ReadValues::over(bytes, PERF_FORMAT_GROUP);
  };
  EXPECT_EQ(group_of(8190)->size(), 8190U);
  EXPECT_FALSE(group_of(8191)) << "65536 bytes: only 65535 count";
  EXPECT_FALSE(group_of(~std::uint64_t{0}));
}

TEST(RecordMisuseTest, AViewThatIsParsedAgainIsTheSame) {
  const DecodedRecord decoded{RecordBuilder{PERF_RECORD_COMM}.u32(1).u32(2).text("again"),
                              sampling(0)};
  Comm comm = decoded.as<Comm>();
  EXPECT_EQ(comm.parse(), nullptr);
  EXPECT_EQ(comm.comm(), "again");
}

}  // namespace
}  // namespace perfring::record
