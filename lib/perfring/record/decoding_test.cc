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
  EXPECT_EQ(text.substr(0, text.find(", bytes")), "LOST misc 0x0 size 12: malformed \"id\"");
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

TEST(RecordMisuseTest, AnIndexThatThereIsNotEndsTheProgram) {
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

TEST(RecordMisuseTest, WhatIsMadeByHandHasWhatItsWordsHave) {
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
  EXPECT_TRUE((StackUser{{}, ~std::uint64_t{0}}.dumped().empty()));
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

TEST(RecordMisuseTest, CountsOfTooFewBytesAreNone) {
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
