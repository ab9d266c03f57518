// Callbacks that stop, throw or drain again, limits, and what add() refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/operator_new.h"
#include "perfring/testing/rings.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kKeyedSize;
using testing::MergedEvent;
using testing::Rings;
using testing::sample;

constexpr auto kClock = [] { return std::uint64_t{1000}; };

// Writes the keys 0, 10, 20 ... to ring 0, and 5, 15, 25 ... to ring 1.
void write_alternately(Rings<>& rings, std::uint64_t each) {
  for (std::uint64_t i = 0; i < each; ++i) {
    rings.write(0, 10 * i);
    rings.write(1, 10 * i + 5);
  }
}

TEST(MergeCallbackTest, ACallbackThatReturnsFalseStopsAfterItsEvent) {
  Rings<> rings{2};
  write_alternately(rings, 20);
  EXPECT_EQ(rings.merge.run(KeyAt{}, kClock, [](const Ordered& each) { return each.key < 20; }),
            MergeEnd::Stopped);
  EXPECT_EQ(rings.tail(0), 3 * kKeyedSize);
  EXPECT_EQ(rings.tail(1), 2 * kKeyedSize);
  const auto merged = rings.run(1000);
  ASSERT_EQ(merged.size(), 35U);
  EXPECT_EQ(merged[0], sample(1, 25));
}

TEST(MergeCallbackTest, ThrowPropagatesLeavingRestInRings) {
  Rings<> rings{2};
  write_alternately(rings, 20);
  EXPECT_THROW(rings.merge.run(KeyAt{}, kClock,
                               [](const Ordered& each) {
                                 if (each.key == 20) throw std::runtime_error{"enough"};
                               }),
               std::runtime_error);
  EXPECT_EQ(rings.tail(0), 3 * kKeyedSize);
  EXPECT_EQ(rings.tail(1), 2 * kKeyedSize);
  EXPECT_EQ(rings.run(1000).size(), 35U);
}

TEST(MergeCallbackTest, AThrowWithinManyEventsOfOneRingLeavesTheRest) {
  Rings<> rings{2};
  for (std::uint64_t i = 0; i < 30; ++i) rings.write(0, i);
  EXPECT_THROW(rings.merge.run(KeyAt{}, kClock,
                               [](const Ordered& each) {
                                 if (each.key == 9) throw std::runtime_error{"enough"};
                               }),
               std::runtime_error);
  EXPECT_EQ(rings.tail(0), 10 * kKeyedSize);
  const auto merged = rings.run(1000);
  ASSERT_EQ(merged.size(), 20U);
  EXPECT_EQ(merged[0], sample(0, 10));
}

TEST(MergeCallbackTest, AKeyOrAClockThatThrowsLosesNothing) {
  for (unsigned throws_at = 0; throws_at < 43; ++throws_at) {
    Rings<> rings{2};
    write_alternately(rings, 20);
    std::vector<MergedEvent> merged;
    const auto take = [&](const Ordered& each) { merged.push_back(testing::copy(each)); };
    unsigned calls = 0;
    const auto may_throw = [&] {
      if (calls++ == throws_at) throw std::runtime_error{"now"};
    };
    const auto key = [&](const Sample& each) {
      may_throw();
      return KeyAt{}(each);
    };
    const auto clock = [&] {
      may_throw();
      return std::uint64_t{1000};
    };
    try {
      rings.merge.run(key, clock, take);
    } catch (const std::runtime_error&) {
    }
    rings.merge.run(key, clock, take);
    ASSERT_EQ(merged.size(), 40U);
    for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(merged[i], sample(i % 2, 5 * i));
  }
}

TEST(MergeCallbackTest, ALimitLeavesTheRestInTheRings) {
  Rings<> rings{2};
  write_alternately(rings, 20);
  EXPECT_THAT(rings.run(1000, 0), IsEmpty());
  EXPECT_EQ(rings.end, MergeEnd::Limit);
  EXPECT_THAT(rings.run(1000, 3), ElementsAre(sample(0, 0), sample(1, 5), sample(0, 10)));
  EXPECT_EQ(rings.end, MergeEnd::Limit);
  EXPECT_EQ(rings.tail(0), 2 * kKeyedSize);
  EXPECT_EQ(rings.tail(1), 1 * kKeyedSize);
  EXPECT_EQ(rings.run(1000, 37).size(), 37U);
  EXPECT_EQ(rings.end, MergeEnd::Released) << "nothing was left";
}

TEST(MergeCallbackTest, ALimitHoldsInARunOfOneRingToo) {
  Rings<> rings{2};
  for (std::uint64_t i = 0; i < 50; ++i) rings.write(0, i);
  EXPECT_EQ(rings.run(1000, 17).size(), 17U);
  EXPECT_EQ(rings.tail(0), 17 * kKeyedSize);
}

TEST(MergeCallbackTest, ARunWithinARunDeliversNothing) {
  Rings<> rings{2};
  Rings<> other{1};
  write_alternately(rings, 2);
  std::vector<MergedEvent> merged;
  rings.merge.run(KeyAt{}, kClock, [&](const Ordered& each) {
    merged.push_back(testing::copy(each));
    const auto none = [](const Ordered&) { ADD_FAILURE(); };
    EXPECT_EQ(rings.merge.run(KeyAt{}, kClock, none), MergeEnd::Nested);
    EXPECT_EQ(rings.merge.flush(KeyAt{}, none), MergeEnd::Nested);
    EXPECT_FALSE(rings.merge.add(other[0].page(), other[0].data()));
  });
  EXPECT_THAT(merged, ElementsAre(sample(0, 0), sample(1, 5), sample(0, 10), sample(1, 15)));
  EXPECT_EQ(rings.merge.counts().delivered, 4U);
}

TEST(MergeCallbackTest, TailNeverGoesBackAfterDrainWithinRun) {
  for (const std::uint64_t limit : {3U, 6U}) {
    Rings<> rings{2};
    write_alternately(rings, 3);
    std::uint64_t events = 0;
    const auto drain_the_first = [&](const Ordered&) {
      if (++events != 2) return;
      Ring<>::over(rings[0].page(), rings[0].data())->for_each([](const PerfEvent&) {});
    };
    rings.merge.run(KeyAt{}, kClock, drain_the_first, limit);
    EXPECT_EQ(events, limit) << "the delivered events are still there";
    EXPECT_EQ(rings.tail(0), 3 * kKeyedSize);
    rings.write(0, 40);
    EXPECT_EQ(rings.run(1000).back(), sample(0, 40));
  }
}

TEST(MergeCallbackTest, RecordsConsumedBetweenRunsAreSkipped) {
  Rings<> rings{2, {.slack = 985}};
  write_alternately(rings, 3);
  EXPECT_EQ(rings.run(1000).size(), 3U);
  Ring<>::over(rings[0].page(), rings[0].data())->for_each([](const PerfEvent&) {});
  rings.write(0, 40);
  EXPECT_THAT(rings.flush(), ElementsAre(sample(1, 15), sample(1, 25), sample(0, 40)));
}

TEST(MergeCallbackTest, NothingIsAllocatedForEvents) {
  Rings<> rings{2};
  write_alternately(rings, 500);
  const std::size_t before = testing::allocations;
  std::uint64_t events = 0;
  rings.merge.run(KeyAt{}, kClock, [&](const Ordered&) { ++events; });
  rings.merge.flush(KeyAt{}, [&](const Ordered&) { ++events; });
  EXPECT_EQ(testing::allocations, before);
  EXPECT_EQ(events, 1000U);
}

TEST(MergeAddTest, RingsAreNumberedFromZero) {
  Rings<> rings{0};
  testing::FakeRing a{4096};
  testing::FakeRing b{4096};
  EXPECT_EQ(rings.merge.add(a.page(), a.data()), 0U);
  EXPECT_EQ(rings.merge.add(b.page(), b.data()), 1U);
  EXPECT_EQ(rings.merge.rings(), 2U);
}

TEST(MergeAddTest, RefusesInvalidOrDuplicateRing) {
  Rings<> rings{1};
  testing::FakeRing other{4096};
  EXPECT_FALSE(rings.merge.add(rings[0].page(), rings[0].data()));
  EXPECT_FALSE(rings.merge.add(rings[0].page(), other.data()));
  EXPECT_FALSE(rings.merge.add(other.page(), rings[0].data()));
  EXPECT_FALSE(rings.merge.add(other.page(), other.data().first(4095)));
  EXPECT_FALSE(rings.merge.add(other.data(), 4096)) << "a page and no data";
  EXPECT_EQ(rings.merge.rings(), 1U);
  EXPECT_EQ(rings.merge.add(other.data(), 2048), 1U);
}

TEST(MergeAddTest, RefusesARingThatOverlapsAnother) {
  testing::FakeRing whole{8192};
  testing::FakeRing other{4096};
  const Bytes half = whole.data().last(4096);
  auto& page_in_data = *reinterpret_cast<perf_event_mmap_page*>(whole.data().data());
  Rings<> rings{0};
  ASSERT_EQ(rings.merge.add(whole.page(), whole.data()), 0U);
  EXPECT_FALSE(rings.merge.add(other.page(), half)) << "its data are the other's";
  EXPECT_FALSE(rings.merge.add(page_in_data, other.data())) << "its page is in the other's data";
  EXPECT_EQ(rings.merge.add(other.page(), other.data()), 1U);
  Rings<> reversed{0};
  ASSERT_EQ(reversed.merge.add(page_in_data, other.data()), 0U);
  EXPECT_FALSE(reversed.merge.add(whole.page(), whole.data())) << "the other's page is in its data";
  EXPECT_EQ(reversed.merge.add(whole.page(), half), 1U);
}

TEST(MergeAddTest, ARingMayComeBetweenRuns) {
  Rings<> rings{1, {.slack = 980}};
  rings.write(0, 10);
  rings.write(0, 30);
  EXPECT_EQ(rings.run(1000).size(), 1U);
  testing::FakeRing other{4096};
  other.sample(testing::keyed(25));
  ASSERT_EQ(rings.merge.add(other.page(), other.data()), 1U);
  EXPECT_THAT(rings.run(1100), ElementsAre(sample(1, 25), sample(0, 30)));
}

TEST(MergeCallbackTest, ANullPointerToAFunctionEndsTheProgram) {
  Rings<> rings{1};  // empty: there is nothing to deliver
  void (*each)(const Ordered&) = [](const Ordered&) {};
  std::uint64_t (*key)(const Sample&) = [](const Sample&) { return std::uint64_t{0}; };
  std::uint64_t (*clock)() = [] { return std::uint64_t{1000}; };
  EXPECT_EQ(rings.merge.run(key, clock, each), MergeEnd::Released);
  EXPECT_EQ(rings.merge.flush(key, each), MergeEnd::Released);
  EXPECT_DEATH(rings.merge.run(key, decltype(clock){nullptr}, each), "");
  // The same where the function would not be called.
  Rings<> full{2};
  write_alternately(full, 1);
  const auto nested = [&](const Ordered&) { full.merge.run(key, decltype(clock){nullptr}, each); };
  EXPECT_DEATH(full.merge.run(key, clock, nested), "");
  EXPECT_DEATH(rings.merge.run(decltype(key){nullptr}, clock, each), "");
  EXPECT_DEATH(rings.merge.run(key, clock, decltype(each){nullptr}), "");
  EXPECT_DEATH(rings.merge.flush(decltype(key){nullptr}, each), "");
  EXPECT_DEATH(rings.merge.flush(key, decltype(each){nullptr}), "");
}

TEST(MergeCallbackTest, ALimitOf0DeliversNothing) {
  Rings<> empty{2};
  EXPECT_THAT(empty.run(1000, 0), IsEmpty());
  EXPECT_EQ(empty.end, MergeEnd::Released);
  Rings<> rings{2};
  write_alternately(rings, 2);
  EXPECT_THAT(rings.run(1000, 0), IsEmpty());
  EXPECT_EQ(rings.end, MergeEnd::Limit);
  EXPECT_THAT(rings.flush(0), IsEmpty());
  EXPECT_EQ(rings.end, MergeEnd::Limit);
  EXPECT_EQ(rings.run(1000).size(), 4U);
}

}  // namespace
}  // namespace perfring
