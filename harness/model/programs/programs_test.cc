// The checker gives algorithms the verdicts that are known from elsewhere.

#include "harness/model/programs/programs.h"

#include <gtest/gtest.h>

#include "harness/model/engine/explorer.h"

namespace perfring::model {
namespace {

class KnownProgramTest : public testing::TestWithParam<KnownProgram> {};

TEST_P(KnownProgramTest, TheVerdictIsTheKnownOneWithAndWithoutMerging) {
  for (const bool merge : {false, true}) {
    ExploreOptions options;
    options.merge = merge;
    const Result result = explore(GetParam().make(), options);
    EXPECT_EQ(result.bound, "");
    EXPECT_EQ(result.violation ? result.violation->cause.what : "", GetParam().violated)
        << (result.violation ? trace_table(*result.violation) : "");
    // None holds for want of executions.
    EXPECT_TRUE(result.violation || merge || result.executions >= 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, KnownProgramTest, testing::ValuesIn(known_programs()),
                         [](const auto& known) {
                           std::string name = known.param.name;
                           name[name.find('/')] = '_';
                           return name;
                         });

}  // namespace
}  // namespace perfring::model
