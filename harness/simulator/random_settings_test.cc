#include "harness/simulator/random_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kSeeds = 5000;

TEST(RandomSettingsTest, EachSeedGivesPossibleSettingsWithinTheirRanges) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RunSettings settings = random_settings(seed);
    ASSERT_EQ(impossible(settings), "") << to_string(settings);
    for (const SettingName& name : setting_names()) {
      ASSERT_GE(settings.*name.field, name.min) << name.name;
      ASSERT_LE(settings.*name.field, name.max) << name.name;
    }
  }
}

TEST(RandomSettingsTest, EverySettingIsDrawn) {
  for (const SettingName& name : setting_names()) {
    std::set<std::uint64_t> values;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      values.insert(random_settings(seed).*name.field);
    }
    const std::uint64_t possible = name.max - name.min + 1;
    const bool few = possible >= 2 && possible <= 4;  // of which each is drawn
    EXPECT_GE(values.size(), few ? possible : std::uint64_t{2}) << name.name;
    EXPECT_TRUE(values.contains(name.min)) << name.name << " " << name.min;
  }
}

TEST(RandomSettingsTest, TheSameSeedGivesTheSameSettings) {
  EXPECT_EQ(random_settings(7), random_settings(7));
  EXPECT_NE(random_settings(7), random_settings(8));
}

TEST(RandomSettingsTest, OneByteMoreOfPayloadThanARingHoldsIsNotDrawnButOneLessIs) {
  std::uint64_t largest = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RunSettings settings = random_settings(seed);
    if (settings.pages == 1) largest = std::max(largest, settings.payload_max);
  }
  EXPECT_EQ(largest, 4052U);
}

}  // namespace
}  // namespace perfring::simulator
