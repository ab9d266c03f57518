#include "harness/model/engine/compare.h"

#include <gtest/gtest.h>

namespace perfring::model {
namespace {

// A checkpoint that keeps quiet about a value on which the thread still depends.
TEST(CompareMergedTest, ACheckpointThatLeavesOutAValueIsADifference) {
  const auto program = [](bool lies) {
    Program p;
    const Var x = p.var("x");
    const Var y = p.var("y");
    p.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
    p.threads.emplace_back([=] {
      const std::uint64_t first = x.load(std::memory_order_relaxed);
      const std::uint64_t second = x.load(std::memory_order_relaxed);
      lies ? checkpoint({second}) : checkpoint({first, second});
      y.store(2 * first + second, std::memory_order_relaxed);
    });
    return p;
  };
  EXPECT_TRUE(compare_merged(program(false)).differences.empty());
  EXPECT_FALSE(compare_merged(program(true)).differences.empty());
}

}  // namespace
}  // namespace perfring::model
