// The protocol at the size of the longest runs of other checkers. By hand: see the README.

#include <gtest/gtest.h>

#include "harness/model/engine/explorer.h"
#include "harness/model/programs/programs.h"

namespace perfring::model {
namespace {

Result explored(Protocol options, unsigned n, bool merge) {
  options.records = options.polls = n;
  ExploreOptions how;
  how.merge = merge;
  const Result result = explore(protocol(options), how);
  std::printf("N = POLLS = %u: %llu executions, %llu states, %.2f s\n", n,
              static_cast<unsigned long long>(result.executions),
              static_cast<unsigned long long>(result.states), result.seconds);
  EXPECT_TRUE(result.proved()) << result.bound;
  return result;
}

TEST(ProtocolLongTest, ExecutionsAreAsManyAsGenMcCounts) {
  EXPECT_EQ(explored({}, 7, false).executions, 94832u);
  EXPECT_EQ(explored({}, 8, false).executions, 633087u);
  Protocol longer;
  longer.lengths = {2, 1};
  EXPECT_EQ(explored(longer, 8, false).executions, 183297u);
  longer.lengths = {3, 2, 1};
  EXPECT_EQ(explored(longer, 8, false).executions, 42879u);
}

TEST(ProtocolLongTest, TwelveRecordsAndDrainsHoldNoViolation) {
  for (const auto form : {Protocol::Form::A, Protocol::Form::B}) {
    Protocol options;
    options.form = form;
    explored(options, 8, true);
    explored(options, 12, true);
  }
}

}  // namespace
}  // namespace perfring::model
