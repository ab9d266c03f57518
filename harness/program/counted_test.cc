#include "harness/program/counted.h"

#include <gtest/gtest.h>

namespace perfring {
namespace {

TEST(CountedTest, OneIsSingularAndAllElseIsPlural) {
  EXPECT_EQ(counted(0, "record"), "0 records");
  EXPECT_EQ(counted(1, "record"), "1 record");
  EXPECT_EQ(counted(2, "record"), "2 records");
  EXPECT_EQ(counted(4'210'331, "record"), "4,210,331 records");
}

TEST(GroupedTest, EveryThreeDigitsHaveAComma) {
  EXPECT_EQ(grouped(std::uint64_t{999}), "999");
  EXPECT_EQ(grouped(std::uint64_t{1000}), "1,000");
  EXPECT_EQ(grouped(~std::uint64_t{0}), "18,446,744,073,709,551,615");
}

TEST(GroupedTest, AFractionIsRounded) {
  EXPECT_EQ(grouped(1234.5), "1,235");
}

}  // namespace
}  // namespace perfring
