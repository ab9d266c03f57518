#include "harness/cli/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LiveOptionsTest, PayloadIsASizeOrARange) {
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

TEST(LiveOptionsTest, CpusAreAListEachOnce) {
  EXPECT_EQ(*parse_cpus("0-2,5"), (std::vector<std::uint32_t>{0, 1, 2, 5}));
  EXPECT_EQ(*parse_cpus("3,1,3"), (std::vector<std::uint32_t>{1, 3}));
  for (const char* text : {"", "x", "0-", "1-0", "0,", ",0", "0;1", "4294967295", "-1"}) {
    const auto parsed = parse_cpus(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error(), HasSubstr("give CPUs such as 0 or 0-2,5"));
  }
}

TEST(LiveOptionsTest, CpusAreAmongThoseThatAreThere) {
  const std::vector<std::uint32_t> there{0, 1, 4};
  EXPECT_EQ(*choose_cpus({}, there, "online CPUs"), there);
  EXPECT_EQ(*choose_cpus({4}, there, "online CPUs"), std::vector<std::uint32_t>{4});
  EXPECT_EQ(choose_cpus({1, 2}, there, "online CPUs").error(),
            "--cpus: 2 is not among the online CPUs: 0-1,4");
}

TEST(LiveOptionsTest, WatermarkIsANumberOfBytes) {
  EXPECT_EQ(*parse_watermark("0"), 0);
  EXPECT_EQ(*parse_watermark("2147483648"), 2147483648);
  for (const char* text : {"", "-1", "2147483649", "1k", "99999999999"}) {
    EXPECT_FALSE(parse_watermark(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace perfring::cli
