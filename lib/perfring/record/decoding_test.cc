// Records as a Cursor hands them out, whole and uninterpreted: each is decoded, also the one that
// straddles the ring's end. Layouts: several events in one ring (R12). Misuse: what the types allow
// and nobody means.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "perfring/record/layouts.h"
#include "perfring/record/to_string.h"
#include "perfring/record/whole.h"
#include "perfring/ring/cursor.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/made.h"

namespace perfring::record {
namespace {

using perfring::testing::FakeRing;
using testing::Decoded;
using testing::Guarded;
using testing::Made;
using testing::sampling;
using testing::trailing;

TEST(RecordFromCursorTest, EachRecordIsDecodedWhereverTheRingEnds) {
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

TEST(RecordToStringTest, NamesEachFieldAsTheUapiDoes) {
  Made made{PERF_RECORD_MMAP, 2};
  made.u32(1).u32(2).u64(0x30).u64(4).u64(0x50).text("/a").u64(6);
  EXPECT_EQ(to_string(Decoded{made, trailing(PERF_SAMPLE_TIME)}.any()),
            "MMAP misc 0x2 size 56: pid 1, tid 2, addr 0x30, len 4, pgoff 0x50, filename \"/a\", "
            "sample_id {time 6}");
}

TEST(RecordToStringTest, ShowsWhatIsNested) {
  perf_event_attr attr = sampling(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW);
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  Made made{PERF_RECORD_SAMPLE};
  made.u64(2).u64(5).u64(6).u64(7).u64(8).u64(1).u64(0x99).u32(4).run(4, 0xa0).run(8, 0);
  EXPECT_EQ(to_string(Decoded{made, attr}.any()),
            "SAMPLE misc 0x0 size 80: values {nr 2, cntr [{value 5, id 6}, {value 7, id 8}]}, "
            "callchain {nr 1, ips [0x99]}, raw {size 4, data a0a1a2a3}, rest 0001020304050607");
}

TEST(RecordToStringTest, ShowsEachTypesFieldsInTheUapisOrder) {
  const auto text = [](const Made& made, std::uint64_t trailer = 0) {
    return to_string(Decoded{made, trailing(trailer)}.any());
  };
  EXPECT_EQ(text(Made{PERF_RECORD_LOST}.u64(1).u64(2)), "LOST misc 0x0 size 24: id 1, lost 2");
  EXPECT_EQ(text(Made{PERF_RECORD_EXIT}.u32(1).u32(2).u32(3).u32(4).u64(5)),
            "EXIT misc 0x0 size 32: pid 1, ppid 2, tid 3, ptid 4, time 5");
  EXPECT_EQ(text(Made{PERF_RECORD_FORK}.u32(1).u32(2).u32(3).u32(4).u64(5)),
            "FORK misc 0x0 size 32: pid 1, ppid 2, tid 3, ptid 4, time 5");
  EXPECT_EQ(text(Made{PERF_RECORD_THROTTLE}.u64(1).u64(2).u64(3)),
            "THROTTLE misc 0x0 size 32: time 1, id 2, stream_id 3");
  EXPECT_EQ(text(Made{PERF_RECORD_UNTHROTTLE}.u64(1).u64(2).u64(3)),
            "UNTHROTTLE misc 0x0 size 32: time 1, id 2, stream_id 3");
  EXPECT_EQ(text(Made{PERF_RECORD_READ}.u32(1).u32(2).u64(3)),
            "READ misc 0x0 size 24: pid 1, tid 2, values {value 3}");
  Made mmap2{PERF_RECORD_MMAP2};
  mmap2.u32(1).u32(2).u64(0x30).u64(4).u64(0x50).u32(6).u32(7).u64(8).u64(9).u32(10).u32(11);
  EXPECT_EQ(text(mmap2.text("/a")),
            "MMAP2 misc 0x0 size 80: pid 1, tid 2, addr 0x30, len 4, pgoff 0x50, maj 6, min 7, "
            "ino 8, ino_generation 9, prot 10, flags 11, filename \"/a\"");
  perf_event_attr identified{};
  identified.build_id = 1;
  Made with_id{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID};
  with_id.u32(1).u32(2).u64(0x30).u64(4).u64(0x50).u8(3).run(3, 0).run(20, 0xa0).u32(10).u32(11);
  EXPECT_EQ(to_string(Decoded{with_id.text("/a"), identified}.any()),
            "MMAP2 misc 0x4000 size 80: pid 1, tid 2, addr 0x30, len 4, pgoff 0x50, "
            "build_id_size 3, build_id a0a1a2, prot 10, flags 11, filename \"/a\"");
  EXPECT_EQ(text(Made{PERF_RECORD_AUX}.u64(1).u64(2).u64(0x13)),
            "AUX misc 0x0 size 32: aux_offset 1, aux_size 2, flags 0x13");
  EXPECT_EQ(text(Made{PERF_RECORD_ITRACE_START}.u32(1).u32(2)),
            "ITRACE_START misc 0x0 size 16: pid 1, tid 2");
  EXPECT_EQ(text(Made{PERF_RECORD_LOST_SAMPLES}.u64(1)), "LOST_SAMPLES misc 0x0 size 16: lost 1");
  EXPECT_EQ(text(Made{PERF_RECORD_SWITCH_CPU_WIDE}.u32(1).u32(2)),
            "SWITCH_CPU_WIDE misc 0x0 size 16: next_prev_pid 1, next_prev_tid 2");
  EXPECT_EQ(text(Made{PERF_RECORD_NAMESPACES}.u32(1).u32(2).u64(2).u64(3).u64(4).u64(5).u64(6)),
            "NAMESPACES misc 0x0 size 56: pid 1, tid 2, nr_namespaces 2, "
            "namespaces [{dev 3, inode 4}, {dev 5, inode 6}]");
  EXPECT_EQ(text(Made{PERF_RECORD_KSYMBOL}.u64(0x1f).u32(2).u16(3).u16(4).text("f")),
            "KSYMBOL misc 0x0 size 32: addr 0x1f, len 2, ksym_type 3, flags 4, name \"f\"");
  EXPECT_EQ(text(Made{PERF_RECORD_BPF_EVENT}.u16(1).u16(2).u32(3).run(8, 0x10)),
            "BPF_EVENT misc 0x0 size 24: type 1, flags 2, id 3, tag 1011121314151617");
  EXPECT_EQ(text(Made{PERF_RECORD_CGROUP}.u64(1).text("/c")),
            "CGROUP misc 0x0 size 24: id 1, path \"/c\"");
  EXPECT_EQ(text(Made{PERF_RECORD_TEXT_POKE}.u64(0x1f).u16(2).u16(2).run(2, 0x10).run(2, 0x20)),
            "TEXT_POKE misc 0x0 size 24: addr 0x1f, old_len 2, new_len 2, old_bytes 1011, "
            "new_bytes 2021");
  EXPECT_EQ(text(Made{PERF_RECORD_AUX_OUTPUT_HW_ID}.u64(1)),
            "AUX_OUTPUT_HW_ID misc 0x0 size 16: hw_id 1");
  EXPECT_EQ(text(Made{kCallchainDeferred}.u64(1).u64(1).u64(0x2f)),
            "CALLCHAIN_DEFERRED misc 0x0 size 32: cookie 1, nr 1, ips [0x2f]");
  Made change{PERF_RECORD_SWITCH};
  EXPECT_EQ(text(testing::add_sample_id(change), testing::kTrailer),
            "SWITCH misc 0x0 size 56: sample_id {pid 11, tid 12, time 13, id 14, stream_id 15, "
            "cpu 16, res 17, identifier 18}");
}

TEST(RecordToStringTest, ShowsEachFieldOfASample) {
  perf_branch_entry branch{};
  branch.from = 0x20;
  branch.to = 0x21;
  branch.mispred = branch.in_tx = 1;
  branch.cycles = 22;
  branch.type = 9;
  branch.spec = 2;
  branch.new_type = 3;
  branch.priv = 1;
  branch.reserved = 6;
  perf_sample_weight weight{};
  weight.var1_dw = 51;
  weight.var2_w = 52;
  weight.var3_w = 53;
  const auto text = [&](std::uint64_t weight_bit) {
    perf_event_attr attr = sampling((PERF_SAMPLE_WEIGHT_STRUCT << 1) - 1);  // all of v6.18's
    attr.sample_type &= ~std::uint64_t{PERF_SAMPLE_WEIGHT_TYPE};
    attr.sample_type |= weight_bit;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
                       PERF_FORMAT_ID | PERF_FORMAT_LOST;
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | kBranchCounters;
    attr.sample_regs_user = 0b101;
    attr.sample_regs_intr = 0b10;
    Made made{PERF_RECORD_SAMPLE};
    made.u64(1).u64(2).u32(3).u32(4).u64(5).u64(6).u64(7).u64(8).u32(9).u32(10).u64(11);
    made.u64(12).u64(13).u64(14).u64(15).u64(16);  // values
    made.u64(0);                                   // ips
    made.u32(4).run(4, 0xa0);                      // raw
    made.u64(1).u64(19);                           // lbr
    for (const std::byte byte : std::as_bytes(std::span{&branch, 1})) {
      made.u8(std::to_integer<std::uint8_t>(byte));
    }
    made.u64(23);                     // counters
    made.u64(2).u64(0x24).u64(0x25);  // regs_user
    made.u64(8).run(8, 0xb0).u64(6);  // stack_user
    made.u64(weight.full).u64(0x26).u64(0x27);
    made.u64(1).u64(0x28);  // regs_intr
    made.u64(0x29).u64(30).u64(31).u64(32).u64(2).run(2, 0xc0);
    return to_string(Decoded{made, attr}.any());
  };
  const std::string before =
      "identifier 1, ip 0x2, pid 3, tid 4, time 5, addr 0x6, id 7, stream_id 8, cpu 9, res 10, "
      "period 11, values {time_enabled 13, time_running 14, value 12, id 15, lost 16}, "
      "callchain {nr 0, ips []}, raw {size 4, data a0a1a2a3}, branch_stack {nr 1, hw_idx 19, "
      "lbr [{from 0x20, to 0x21, mispred 1, predicted 0, in_tx 1, abort 0, cycles 22, type 9, "
      "spec 2, new_type 3, priv 1, reserved 6}], counters [23]}, "
      "regs_user {abi 2, mask 0x5, regs [0x24, 0x25]}, "
      "stack_user {size 8, data b0b1b2b3b4b5b6b7, dyn_size 6}, ";
  const std::string behind =
      ", data_src 0x26, transaction 0x27, regs_intr {abi 1, mask 0x2, regs [0x28]}, "
      "phys_addr 0x29, cgroup 30, data_page_size 31, code_page_size 32, "
      "aux {size 2, data c0c1}";
  const auto fields = [](const std::string& line) { return line.substr(line.find(": ") + 2); };
  EXPECT_EQ(fields(text(PERF_SAMPLE_WEIGHT_STRUCT)),
            before + "weight {var1_dw 51, var2_w 52, var3_w 53}" + behind);
  EXPECT_EQ(fields(text(PERF_SAMPLE_WEIGHT)),
            before + "weight {full " + std::to_string(weight.full) + "}" + behind);
}

TEST(RecordToStringTest, NoByteOfANameActsOnATerminal) {
  Made made{PERF_RECORD_COMM};
  made.u32(1).u32(2).text("\x1b[2J\"\\\n\x80");
  EXPECT_EQ(to_string(Decoded{made, sampling(0)}.any()),
            "COMM misc 0x0 size 32: pid 1, tid 2, comm \"\\x1b[2J\\x22\\x5c\\x0a\\x80\"");
}

TEST(RecordToStringTest, NamesOfAnyLanguageAreShownAsTheyAre) {
  Made made{PERF_RECORD_COMM};
  // Latin-1's i with diaeresis, the same in UTF-8, and the C1 control CSI, which acts on a
  // terminal.
  made.u32(1).u32(2).text("\xef \xc3\xaf\xe2\x82\xac \xc2\x9b");
  EXPECT_EQ(to_string(Decoded{made, sampling(0)}.any()),
            "COMM misc 0x0 size 32: pid 1, tid 2, comm \"\\xef \xc3\xaf\xe2\x82\xac \\xc2\\x9b\"");
}

TEST(RecordToStringTest, ARecordWithoutFieldsIsItsHeader) {
  EXPECT_EQ(to_string(Decoded{Made{PERF_RECORD_SWITCH, 0x2000}, sampling(0)}.any()),
            "SWITCH misc 0x2000 size 8");
}

TEST(RecordToStringTest, UnknownAndMalformedRecordsAreShownAsBytes) {
  EXPECT_EQ(to_string(Decoded{Made{4711}.run(2, 1), sampling(0)}.any()),
            "type 4711 misc 0x0 size 10: rest 0102");
  const std::string text = to_string(Decoded{Made{PERF_RECORD_LOST}.u32(1), sampling(0)}.any());
  EXPECT_EQ(text, "LOST misc 0x0 size 12: malformed \"id\", bytes " +
                      testing::hex(Made{PERF_RECORD_LOST}.u32(1).bytes()));
}

TEST(RecordToStringTest, EveryTypeOfTheUapiHasItsName) {
  EXPECT_STREQ(type_name(PERF_RECORD_MMAP), "MMAP");
  EXPECT_STREQ(type_name(PERF_RECORD_SAMPLE), "SAMPLE");
  EXPECT_STREQ(type_name(PERF_RECORD_SWITCH_CPU_WIDE), "SWITCH_CPU_WIDE");
  EXPECT_STREQ(type_name(PERF_RECORD_AUX_OUTPUT_HW_ID), "AUX_OUTPUT_HW_ID");
  EXPECT_STREQ(type_name(kCallchainDeferred), "CALLCHAIN_DEFERRED");
  EXPECT_EQ(type_name(0), nullptr);
  EXPECT_EQ(type_name(23), nullptr);
}

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

// R28: the fields of each record that the kernel may have made too long.
const std::array<Made, 3> kTooLong{
    Made{PERF_RECORD_KSYMBOL}.u64(1).u32(2).u16(1).u16(0).text("bpf_prog_1"),
    Made{PERF_RECORD_BPF_EVENT}.u16(1).u16(0).u32(3).u64(4),
    Made{PERF_RECORD_TEXT_POKE}.u64(1).u16(3).u16(1).u32(0x2010),
};

const SideBand& side_band(const Any& any) {
  if (const auto* const symbol = std::get_if<Ksymbol>(&any)) return *symbol;
  if (const auto* const program = std::get_if<BpfEvent>(&any)) return *program;
  return std::get<TextPoke>(any);
}

TEST(RecordSampleIdTest, IsRightBehindTheFieldsOfARecordThatIsTooLong) {
  for (Made made : kTooLong) {
    made.u64(1234).u32(3).u32(0);
    for (const std::size_t more : {0U, 8U, 40U}) {
      Made longer = made;
      longer.run(more, 0x70);
      const Decoded decoded{longer, trailing(PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)};
      const SideBand& record = side_band(decoded.any());
      EXPECT_EQ(record.sample_id().time(), 1234U);
      EXPECT_EQ(record.sample_id().cpu(), 3U);
      EXPECT_EQ(record.sample_id_size(), 16U);
      EXPECT_EQ(record.rest().size(), more);
      if (more != 0) {
        EXPECT_EQ(record.rest()[0], std::byte{0x70});
      }
    }
  }
}

// What is behind sample_id may be that of an older record.
TEST_F(RecordLayoutsTest, ARecordThatIsTooLongHasItsIdentifierRightBehindItsFields) {
  for (Made made : kTooLong) {
    made.u64(1234).u32(3).u32(0).u64(12).u64(0).u64(7);
    const SideBand& record = side_band(decoded(made));
    EXPECT_EQ(&record.layout(), &time_);
    EXPECT_EQ(record.sample_id().time(), 1234U);
    EXPECT_EQ(record.sample_id().identifier(), 12U);
  }
}

TEST_F(RecordLayoutsTest, ARecordOfAnotherEventIsKeptUninterpreted) {
  const auto& unknown = std::get<Unknown>(decoded(Made{PERF_RECORD_SAMPLE}.u64(8).u64(1)));
  EXPECT_EQ(unknown.header().type, unsigned{PERF_RECORD_SAMPLE});
  EXPECT_EQ(unknown.rest().size(), 16U);
  EXPECT_FALSE(unknown.sample_id().identifier());
}

// R25
TEST_F(RecordLayoutsTest, ASampleWithAnotherIdIsOfTheStrayLayout) {
  const Layouts layouts = Layouts::over(entries_, &time_).value();
  const auto decode_made = [&](const Made& made) {
    memory_.place(made.bytes());
    return decode(memory_.bytes(), layouts);
  };
  const Any stray = decode_made(Made{PERF_RECORD_SAMPLE}.u64(8).u64(1).u32(2).u32(0));
  EXPECT_EQ(std::get<Sample>(stray).time(), 1U);
  EXPECT_EQ(&std::get<Sample>(stray).layout(), &time_);
  const Any known = decode_made(Made{PERF_RECORD_SAMPLE}.u64(7).u64(1).u64(7));
  EXPECT_EQ(&std::get<Sample>(known).layout(), &addr_);
  const Any lost = decode_made(Made{PERF_RECORD_LOST}.u64(7).u64(5).u64(1234).u64(3).u64(8));
  EXPECT_TRUE(std::holds_alternative<Unknown>(lost)) << "its id is always its own";
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

// The bytes change while they are decoded and looked at, as a hostile producer's may: lengths are
// loaded once, so that no byte outside the record is read. Two inaccessible pages say so.

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

TEST(RecordMisuseTest, AnIndexOutOfRangeEndsTheProgram) {
  Made made{PERF_RECORD_SAMPLE};
  made.u64(1).u64(100);                                  // a group of one
  made.u64(2).u64(101).u64(102);                         // ips
  made.u64(1).u64(0).u64(113).u64(114).u64(0).u64(115);  // a branch, behind hw_idx
  perf_event_attr attr =
      sampling(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK);
  attr.read_format = PERF_FORMAT_GROUP;
  attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX | kBranchCounters;
  const Decoded decoded{made, attr};
  const auto& sample = decoded.as<Sample>();
  EXPECT_EQ((*sample.values())[0].value, 100U);
  EXPECT_EQ(sample.callchain()->ips()[1], 102U);
  EXPECT_EQ((*sample.branch_stack())[0].to, 114U);
  EXPECT_EQ(sample.branch_stack()->counters()[0], 115U);
  const Decoded of_namespaces{Made{PERF_RECORD_NAMESPACES}.u32(1).u32(2).u64(1).u64(3).u64(4),
                              sampling(0)};
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

TEST(RecordMisuseTest, ViewsMadeByHandReadNothingBeyondTheirWords) {
  const std::array<std::uint64_t, 2> words{5, 6};
  const U64s two{reinterpret_cast<const std::byte*>(words.data()), words.size()};
  const Regs regs{PERF_SAMPLE_REGS_ABI_64, 0b1011, two};  // a register more than there are words
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
  const Decoded decoded{Made{PERF_RECORD_COMM}.u32(1).u32(2).text("again"), sampling(0)};
  Comm comm = decoded.as<Comm>();
  EXPECT_EQ(comm.parse(), nullptr);
  EXPECT_EQ(comm.comm(), "again");
}

}  // namespace
}  // namespace perfring::record
