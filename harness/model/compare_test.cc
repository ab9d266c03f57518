#include "harness/model/compare.h"

#include <gtest/gtest.h>

#include "harness/model/catalogue.h"

namespace perfring::model {
namespace {

TEST(Compare, AgreesOnEveryProgramOfTheCatalogue) {
  for (const Entry& entry : catalogue()) {
    Size size = entry.size.value_or(Size{});
    size.records = std::min(size.records, 4u);
    size.polls = std::min(size.polls, 2u);
    for (const Form form : {Form::A, Form::B}) {
      if (!entry.has_forms && form == Form::B) continue;
      for (const Case& one : entry.cases(size, form, "")) {
        SCOPED_TRACE(entry.name + " " + one.label);
        const Comparison comparison = compare_merged(one.program);
        EXPECT_EQ(comparison.differences, std::vector<std::string>{});
        EXPECT_EQ(comparison.each.bound + comparison.merged.bound, "");
        EXPECT_LE(comparison.merged.executions, comparison.each.executions);
      }
    }
  }
}

// A checkpoint that keeps quiet about a value on which the thread still depends.
TEST(Compare, FindsACheckpointThatLies) {
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
