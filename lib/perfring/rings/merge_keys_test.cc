// The rules M7 and M8 of a merge (merge.h): keys that prove how long their writers took, and keys
// of any value.

#include "perfring/rings/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "perfring/rings/testing/rings.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kKeyedSize;
using testing::late;
using testing::Rings;
using testing::sample;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(MergeM7Test, AKeyOlderThanTheClockOfTheLookBeforeProvesADelay) {
  Rings<> rings{1, {.slack = 50}};
  rings.write(0, 1);
  rings.run(1000);
  EXPECT_EQ(rings.merge.counts().delay_seen, 0U) << "it may have been there for long";
  rings.write(0, 970);
  rings.run(2000);
  EXPECT_EQ(rings.merge.counts().delay_seen, 30U);
  EXPECT_EQ(rings.merge.slack(), 60U);
  rings.write(0, 1999);
  rings.write(0, 1980);
  EXPECT_THAT(rings.run(2040), IsEmpty()) << "1980 and 60 are not less";
  EXPECT_EQ(rings.merge.counts().delay_seen, 30U);
  rings.write(0, 1940);
  rings.run(2500);
  EXPECT_EQ(rings.merge.counts().delay_seen, 100U);
  EXPECT_EQ(rings.merge.slack(), 200U);
  rings.write(0, 2490);
  rings.run(3000);
  EXPECT_EQ(rings.merge.slack(), 200U) << "the longest counts";
}

TEST(MergeM7Test, WhatIsReadLongAfterItWasSeenIsMeasuredByItsOwnLook) {
  Rings<> rings{1};
  rings.run(1000);
  rings.run(2000);
  for (std::uint64_t i = 0; i < 20; ++i) rings.write(0, 2100 + i);  // published before 3000
  rings.write(0, 1700);                                             // 300 late at least
  rings.run(3000, 0);
  EXPECT_EQ(rings.merge.counts().delay_seen, 0U) << "it was not read yet";
  rings.write(0, 2950);  // 50 late at least
  rings.run(4000);
  EXPECT_EQ(rings.merge.counts().delay_seen, 300U);
}

TEST(MergeM7Test, WhatIsReadUpToTheEndOfALookIsMeasuredByTheNextOneBehindIt) {
  Rings<> rings{1, {.slack = 100, .learns = false}};
  for (std::uint64_t i = 0; i < 12; ++i) rings.write(0, i < 3 ? 950 : 990, 0);
  EXPECT_THAT(rings.run(1000), IsEmpty()) << "9 are read";
  rings.write(0, 400);  // 600 late at least
  EXPECT_EQ(rings.run(1060).size(), 3U) << "all of the first look are read";
  EXPECT_THAT(rings.run(1065), IsEmpty());
  EXPECT_EQ(rings.merge.counts().delay_seen, 0U);
  rings.run(1200);
  EXPECT_EQ(rings.merge.counts().delay_seen, 600U);
}

TEST(MergeM7Test, ASlackNeitherLearnsUnaskedNorFromWhatIsTooLong) {
  Rings<> fixed{1, {.slack = 50, .learns = false}};
  Rings<> bounded{1, {.slack = 50, .slack_most = 100}};
  for (Rings<>* rings : {&fixed, &bounded}) {
    rings->run(1000);
    rings->write(0, 949);
    rings->run(2000);
    EXPECT_EQ(rings->merge.counts().delay_seen, 51U);
    EXPECT_EQ(rings->merge.slack(), 50U);
  }
  bounded.write(0, 1950);
  bounded.run(3000);
  EXPECT_EQ(bounded.merge.slack(), 100U);
  bounded.write(0, 0);
  bounded.run(4000);
  EXPECT_EQ(bounded.merge.slack(), 100U);
  EXPECT_EQ(bounded.merge.counts().delay_seen, 3000U);
}

TEST(MergeM8Test, AKeyThatIsAheadOfTheClockStopsNoRing) {
  Rings<> rings{1, {.slack = 10}};
  rings.write(0, kMax);
  rings.write(0, 150);
  rings.write(0, 99);
  EXPECT_THAT(rings.run(100), IsEmpty());
  EXPECT_THAT(rings.run(111),
              ElementsAre(sample(0, 99),
                          testing::Got{0, 100, false, testing::Seen::sample(testing::keyed(kMax))},
                          testing::Got{0, 100, false, testing::Seen::sample(testing::keyed(150))}));
  EXPECT_EQ(rings.merge.counts().ahead, 2U);
  EXPECT_EQ(rings.tail(0), 3 * kKeyedSize);
}

TEST(MergeM8Test, KeysOfAnyValueAreFlushedInTheirOrder) {
  Rings<> rings{3};
  rings.write(0, 0);
  rings.write(0, kMax / 2);
  rings.write(0, kMax);
  rings.write(1, 1);
  rings.write(1, kMax - 1);
  rings.write(2, kMax / 2 + 1);
  rings.write(2, kMax);
  EXPECT_THAT(rings.flush(),
              ElementsAre(sample(0, 0), sample(1, 1), sample(0, kMax / 2), sample(2, kMax / 2 + 1),
                          sample(1, kMax - 1), sample(0, kMax), sample(2, kMax)));
  rings.write(1, 0);
  rings.write(1, kMax);
  EXPECT_THAT(rings.flush(), ElementsAre(late(1, 0), sample(1, kMax)));
  EXPECT_EQ(rings.merge.counts().worst_late, kMax);
}

TEST(MergeM8Test, ALowKeyAmongHighOnesIsNext) {
  Rings<> rings{2};
  for (std::uint64_t i = 0; i < 20; ++i) rings.write(0, kMax - 100 + i);
  rings.write(0, 3);
  rings.write(1, kMax - 50);
  const auto got = rings.flush();
  ASSERT_EQ(got.size(), 22U);
  EXPECT_EQ(got[13], late(0, 3)) << "as soon as the window has it";
}

}  // namespace
}  // namespace perfring
