#include "harness/cli/live_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LiveOptions, PayloadIsASizeOrARange) {
  EXPECT_EQ(parse_payload("8")->min, 8U);
  EXPECT_EQ(parse_payload("8")->max, 8U);
  EXPECT_EQ(parse_payload("9-65516")->min, 9U);
  EXPECT_EQ(parse_payload("9-65516")->max, 65516U);
  for (const char* text : {"", "-", "7", "8-", "-8", "9-8", "65517", "8-65517", "8 ", "+8", "0x8",
                           "8-9-10", "99999999999999999999"}) {
    const auto parsed = parse_payload(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error(),
                AllOf(HasSubstr(std::string{"'"} + text + "'"), HasSubstr("from 8 to 65516")));
  }
}

TEST(LiveOptions, CpusAreAListOfOnlineOnes) {
  const std::vector<std::uint32_t> online = os::online_cpus().value();
  EXPECT_EQ(*parse_cpus(os::to_cpu_list(online)), online);
  const std::string first = std::to_string(online[0]);
  EXPECT_EQ(*parse_cpus(first + "," + first), std::vector{online[0]}) << "each once";
  for (const char* text : {"", "x", "0-", "1-0", "0,", ",0", "0;1", "65000", "4294967295", "-1"}) {
    const auto parsed = parse_cpus(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error(), HasSubstr("(online CPUs: " + os::to_cpu_list(online) + ")"));
  }
}

TEST(LiveOptions, PagesAreAPowerOfTwoUpTo2GiB) {
  EXPECT_EQ(*parse_pages("1"), 1U);
  EXPECT_EQ(*parse_pages("512"), 512U);
  for (const char* text : {"", "0", "3", "-1", "1.5", "1048577", "4294967296", "8k"}) {
    const auto parsed = parse_pages(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error(), HasSubstr("a power of two"));
  }
}

TEST(LiveOptions, SecondsAreAboveZeroAndBounded) {
  EXPECT_EQ(*parse_seconds("0.25"), 0.25);
  EXPECT_EQ(*parse_seconds("86400"), 86400);
  for (const char* text : {"", "0", "-1", "nan", "inf", "86401", "1s", "1e99"}) {
    EXPECT_FALSE(parse_seconds(text).has_value()) << text;
  }
}

TEST(LiveOptions, WatermarkIsANumberOfBytes) {
  EXPECT_EQ(*parse_watermark("0"), 0);
  EXPECT_EQ(*parse_watermark("2147483648"), 2147483648);
  for (const char* text : {"", "-1", "2147483649", "1k", "99999999999"}) {
    EXPECT_FALSE(parse_watermark(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace perfring::cli
