// Program::finally, which runs when all threads have ended.

#include <gtest/gtest.h>

#include "harness/model/engine/explorer.h"

namespace perfring::model {
namespace {

TEST(FinallyTest, ItSeesEveryThreadsWrites) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.fetch_add(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] { x.fetch_add(2, std::memory_order_relaxed); });
  program.finally = [=] { check(x.read() == 3, "an addition is lost"); };
  EXPECT_TRUE(explore(program).proved());
}

// A blocked execution is not complete, so that nothing that it ends with counts.
TEST(FinallyTest, AnAssumptionThatFailsBlocksTheExecution) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] { x.store(2, std::memory_order_relaxed); });
  program.finally = [=] {
    const std::uint64_t last = x.read();
    assume(last == 1);
    check(last == 1, "an execution that is blocked");
  };
  const Result result = explore(program);
  EXPECT_FALSE(result.violation.has_value());
  EXPECT_EQ(result.executions, 1u);
  EXPECT_EQ(result.blocked, 1u);
}

}  // namespace
}  // namespace perfring::model
