// for_each and for_each_while: single callbacks and overload sets, and wrong ones. And the memory
// over which Ring::over() accepts a ring.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using testing::FakeRing;
using testing::payload;
using testing::ring_over;

// Samples of 4, 12 (straddling the end) and 20 bytes; a loss of 7; a record of an unknown type, 16
// bytes in total; and a sample of 4.
class RingForEachTest : public ::testing::Test {
 protected:
  RingForEachTest() {
    fake_.sample(payload(4));
    fake_.sample(payload(12));
    fake_.sample(payload(20));
    fake_.lost(7);
    fake_.raw_record(77, 16, {}, 16);
    fake_.sample(payload(4));
  }

  std::uint64_t consumed() const { return fake_.page().data_tail - kStart; }

  static constexpr std::uint64_t kStart = 3 * 65536 - 32;
  static constexpr std::uint64_t kAll = 16 + 24 + 32 + 24 + 16 + 16;
  FakeRing fake_{65536, kStart};
  Ring<> ring_ = ring_over(fake_);
};

std::string word(const Sample& sample) {
  return "S" + std::to_string(sample.size()) + (sample.tail.empty() ? "" : "!");
}
std::string word(const Lost& lost) {
  return "L" + std::to_string(lost.count);
}
std::string word(const Malformed& malformed) {
  return "M" + std::to_string(malformed.size());
}

TEST_F(RingForEachTest, AnOverloadSetIsCalledWithWhatEachEventIs) {
  std::vector<std::string> words;
  ring_.for_each(Overloaded{[&](const Sample& sample) { words.push_back(word(sample)); },
                            [&](const Lost& lost) { words.push_back(word(lost)); },
                            [&](const Malformed& bad) { words.push_back(word(bad)); }});
  EXPECT_THAT(words, ElementsAre("S4", "S12!", "S20", "L7", "M16", "S4"));
  EXPECT_EQ(consumed(), kAll);
}

TEST_F(RingForEachTest, InAnOverloadedAutoTakesTheRestOnly) {
  std::vector<std::string> words;
  ring_.for_each(Overloaded{[&](const Sample&) { words.push_back("sample"); },
                            [&](const auto& other) { words.push_back(word(other)); }});
  EXPECT_THAT(words, ElementsAre("sample", "sample", "sample", "L7", "M16", "sample"));
}

struct OtherSet {
  void operator()(const Sample&) { ++samples; }
  void operator()(const auto&) { ++others; }
  int samples = 0;
  int others = 0;
};

// In a set that is not an Overloaded, an `auto` takes every event whole.
TEST_F(RingForEachTest, InAnotherSetAutoTakesEveryEvent) {
  OtherSet set;
  ring_.for_each(set);
  EXPECT_EQ(set.samples, 0);
  EXPECT_EQ(set.others, 6);
}

TEST_F(RingForEachTest, ACallbackThatTakesAPerfEventGetsIt) {
  std::vector<std::size_t> indices;
  ring_.for_each([&](const auto& event) { indices.push_back(event.index()); });
  EXPECT_THAT(indices, ElementsAre(0, 0, 0, 1, 2, 0));
}

// An overload set need be neither an Overloaded nor copyable.
struct Tally {
  Tally() = default;
  Tally(const Tally&) = delete;
  void operator()(const Sample& sample) & { bytes += sample.size(); }
  void operator()(Lost lost) & { lost_count += lost.count; }
  void operator()(const Malformed&) & { ++malformed; }
  std::size_t bytes = 0;
  std::uint64_t lost_count = 0;
  int malformed = 0;
};

TEST_F(RingForEachTest, AnOverloadSetMayBeAnyObject) {
  Tally tally;
  ring_.for_each(tally);
  EXPECT_EQ(tally.bytes, 4U + 12 + 20 + 4);
  EXPECT_EQ(tally.lost_count, 7U);
  EXPECT_EQ(tally.malformed, 1);
}

TEST_F(RingForEachTest, WhileStopsOnceCallbackReturnsFalse) {
  std::vector<std::string> words;
  const Overloaded until_lost{[&](const Lost&) { return words.push_back("lost"), false; },
                              [&](const auto&) { return words.push_back("other"), true; }};
  EXPECT_FALSE(ring_.for_each_while(until_lost));
  EXPECT_THAT(words, ElementsAre("other", "other", "other", "lost"));
  EXPECT_EQ(consumed(), 16U + 24 + 32 + 24) << "the event that it stopped at counts as consumed";
  EXPECT_TRUE(ring_.for_each_while(until_lost));
  EXPECT_EQ(words.size(), 6U);
  EXPECT_EQ(consumed(), kAll);
  EXPECT_TRUE(ring_.for_each_while(until_lost)) << "of an empty ring";
  EXPECT_EQ(words.size(), 6U);
}

// Every gear of the drain must stop at once: long runs are guessed, and delivered two at a time.
TEST(RingForEachWhileTest, StopsAtAnyEvent) {
  for (int stop = 1; stop <= 40; ++stop) {
    FakeRing fake{65536, 65536 - 20 * 24 - 8};
    for (unsigned i = 0; i < 30; ++i) fake.sample(payload(12, i));
    for (unsigned i = 0; i < 10; ++i) fake.sample(payload(i % 2 == 0 ? 4 : 20, i));
    Ring<> ring = ring_over(fake);
    int delivered = 0;
    EXPECT_EQ(ring.for_each_while([&](const PerfEvent&) { return ++delivered != stop; }), false);
    EXPECT_EQ(delivered, stop);
    EXPECT_EQ(ring.fold(0, [](int n, const PerfEvent&) { return n + 1; }), 40 - stop);
  }
}

TEST_F(RingForEachTest, ExceptionFromOverloadSetPropagates) {
  const Overloaded throws_lost{[](const Lost& lost) -> bool { throw lost.count; },
                               [](const auto&) { return true; }};
  EXPECT_THROW(ring_.for_each_while(throws_lost), std::uint64_t);
  EXPECT_EQ(consumed(), 16U + 24 + 32 + 24);
}

void count_one(const PerfEvent&) {}
bool go_on(const PerfEvent&) {
  return true;
}

TEST_F(RingForEachTest, AcceptsFunctionPointersExceptNull) {
  void (*each)(const PerfEvent&) = &count_one;
  bool (*each_while)(const PerfEvent&) = &go_on;
  int (*folds)(int, const PerfEvent&) = [](int n, const PerfEvent&) { return n + 1; };
  ControlFlow<> (*tries)(Unit, const PerfEvent&) = [](Unit, const PerfEvent&) -> ControlFlow<> {
    return Break{};
  };
  EXPECT_TRUE(ring_.try_fold(Unit{}, tries).is_break());
  EXPECT_EQ(ring_.fold(0, folds), 5);
  ring_.for_each(each);
  EXPECT_TRUE(ring_.for_each_while(each_while));
  // A null pointer ends the program even if there is no event to pass.
  each = nullptr;
  each_while = nullptr;
  folds = nullptr;
  tries = nullptr;
  EXPECT_DEATH(ring_.for_each(each), "");
  EXPECT_DEATH(ring_.for_each_while(each_while), "");
  EXPECT_DEATH(static_cast<void>(ring_.fold(0, folds)), "");
  EXPECT_DEATH(static_cast<void>(ring_.try_fold(Unit{}, tries)), "");
}

TEST_F(RingForEachTest, AnEmptyStdFunctionThrowsAsItAlwaysDoes) {
  EXPECT_THROW(ring_.for_each(std::function<void(const PerfEvent&)>{}), std::bad_function_call);
  EXPECT_EQ(consumed(), 16U);
}

// Do not do this; but the result is defined.
TEST_F(RingForEachTest, DrainingOwnRingInCallbackRepeatsEvents) {
  std::vector<std::string> words;
  bool nested = false;
  const auto note = [&](const PerfEvent& event) {
    words.push_back(std::visit([](const auto& e) { return word(e); }, event));
  };
  ring_.for_each([&](const PerfEvent& event) {
    note(event);
    if (nested || words.size() != 2) return;
    nested = true;
    ring_.for_each(note);
    EXPECT_EQ(consumed(), kAll) << "the kernel may overwrite them from here on";
  });
  EXPECT_THAT(words, ElementsAre("S4", "S12!", "S4", "S12!", "S20", "L7", "M16", "S4", "S20", "L7",
                                 "M16", "S4"));
  EXPECT_EQ(consumed(), kAll);
}

class RingOverMappingTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kPage = 4096;
  alignas(kPage) std::array<std::byte, 3 * kPage> memory_{};
};

TEST_F(RingOverMappingTest, RingUsesDataAfterPage) {
  auto ring = Ring<>::over(memory_, kPage);
  ASSERT_TRUE(ring.has_value());
  auto& page = *reinterpret_cast<perf_event_mmap_page*>(memory_.data());
  // One sample that straddles the end of the two pages.
  const std::uint64_t position = 5 * 2 * kPage - 16;
  const perf_event_header header{PERF_RECORD_SAMPLE, 0, 24};
  const std::uint32_t raw = 12;
  std::memcpy(&memory_[3 * kPage - 16], &header, sizeof(header));
  std::memcpy(&memory_[3 * kPage - 8], &raw, sizeof(raw));
  memory_[3 * kPage - 4] = std::byte{7};
  memory_[kPage + 7] = std::byte{9};
  page.data_tail = position;
  page.data_head = position + 24;
  int samples = 0;
  ring->for_each(Overloaded{[&](const Sample& sample) {
                              ++samples;
                              EXPECT_EQ(sample.head.data(), &memory_[3 * kPage - 4]);
                              EXPECT_EQ(sample.tail.data(), &memory_[kPage]);
                              EXPECT_EQ(sample.size(), 12U);
                              EXPECT_EQ(sample.head.front(), std::byte{7});
                              EXPECT_EQ(sample.tail.back(), std::byte{9});
                            },
                            [](const auto&) { ADD_FAILURE(); }});
  EXPECT_EQ(samples, 1);
  EXPECT_EQ(page.data_tail, position + 24);
}

TEST_F(RingOverMappingTest, RefusesMappingWithInvalidSizes) {
  const auto over = [&](std::size_t size, std::size_t page_size) {
    return Ring<>::over(std::span{memory_}.first(size), page_size).has_value();
  };
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  constexpr std::size_t kHeader = sizeof(perf_event_mmap_page);
  EXPECT_TRUE(over(2 * kPage, kPage));
  EXPECT_TRUE(over(3 * kPage, kPage));
  EXPECT_TRUE(over(3 * kPage, 2 * kPage));
  EXPECT_TRUE(over(kHeader + 8, kHeader)) << "the smallest there is";
  EXPECT_FALSE(over(3 * kPage, kPage + 8)) << "the size of the data is not a power of two";
  EXPECT_FALSE(over(kPage + 4, kPage)) << "nor as small";
  EXPECT_FALSE(over(kPage, kPage)) << "no data";
  EXPECT_FALSE(over(2 * kPage, 3 * kPage));
  EXPECT_FALSE(over(2 * kPage, kMax));
  EXPECT_FALSE(over(2 * kPage, kMax - kPage + 1));
  EXPECT_FALSE(over(2 * kPage, 0)) << "no page";
  EXPECT_FALSE(over(kHeader - 8 + 1024, kHeader - 8)) << "a page size that is not a power of two";
  EXPECT_FALSE(over(0, 0));
  EXPECT_FALSE(over(0, kPage));
  EXPECT_FALSE(Ring<>::over({}, kPage).has_value());
}

TEST_F(RingOverMappingTest, DataThatThePageIsInIsRefused) {
  constexpr std::size_t kHeader = sizeof(perf_event_mmap_page);
  auto& page = *reinterpret_cast<perf_event_mmap_page*>(&memory_[kPage]);
  const auto over = [&](std::size_t from, std::size_t size) {
    return Ring<>::over(page, std::span{memory_}.subspan(from, size)).has_value();
  };
  EXPECT_TRUE(over(0, kPage)) << "it ends where the page begins";
  EXPECT_TRUE(over(kPage + kHeader, 64)) << "it begins where the page ends";
  EXPECT_FALSE(over(kPage + kHeader - 8, 8)) << "the page's last bytes";
  EXPECT_FALSE(over(kPage, 8)) << "its first ones";
  EXPECT_FALSE(over(kPage, kPage));
  EXPECT_FALSE(over(kPage - 8, 16)) << "before it and in it";
  EXPECT_FALSE(over(8, kPage)) << "only the last 8 bytes";
}

TEST_F(RingOverMappingTest, ANullPointerIsRefused) {
  perf_event_mmap_page page{};
  std::byte* const null = nullptr;
  EXPECT_FALSE(Ring<>::over(page, Bytes{null, 64}).has_value());
  EXPECT_FALSE(Ring<>::over(std::span{null, 2 * kPage}, kPage).has_value());
}

TEST_F(RingOverMappingTest, AMisalignedPageOrDataIsRefused) {
  const auto over = [&](std::size_t from, std::size_t page_size) {
    return Ring<>::over(std::span{memory_}.subspan(from, page_size + 64), page_size).has_value();
  };
  EXPECT_TRUE(over(0, 2048));
  EXPECT_TRUE(over(8, 2048));
  for (std::size_t off = 1; off < 8; ++off) {
    if (off % alignof(perf_event_mmap_page) != 0) {
      EXPECT_FALSE(over(off, 2048 - off)) << "the page: " << off;
    }
    EXPECT_FALSE(over(0, 2048 + off)) << "the data: " << off;
  }
}

}  // namespace
}  // namespace perfring
