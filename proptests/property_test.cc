// A counterexample is of use only if it is short, in words, and can be had again.

#include "proptests/property.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <rapidcheck/detail/Configuration.h>

#include <string>

#include "proptests/faulty_kernels.h"
#include "proptests/plan.h"
#include "proptests/world.h"

namespace perfring::proptests {
namespace {

void delivers_nothing() {
  const Plan plan = *plans(everything());
  World<Miscounts> world{plan.settings};
  world.run(plan.actions);
  world.settle();
  expect_good(world);
}

// The failure that always() makes of a property that does not hold.
std::string failure(const rc::detail::Property& property) {
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter{
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results};
    expect_always(property, 1000);
  }
  return results.size() == 1 ? results.GetTestPartResult(0).message() : "";
}

TEST(Counterexample, IsShortAndInWords) {
  const auto found = counterexample(delivers_nothing);
  ASSERT_TRUE(found.has_value());
  EXPECT_NE(found->find("a ring of 1 page, a 64-bit kernel, positions from 0"), std::string::npos);
  EXPECT_NE(found->find("\n  output of "), std::string::npos);
  EXPECT_NE(found->find("no_loss: a LOST of "), std::string::npos);
  EXPECT_LT(found->size(), 700U);
}

TEST(Counterexample, SaysHowToHaveItAgain) {
  const auto property = rc::detail::toProperty(delivers_nothing);
  const std::string found = failure(property);
  EXPECT_NE(found.find("bazel test //proptests"), std::string::npos) << found;
  EXPECT_NE(found.find("--test_filter=Counterexample.SaysHowToHaveItAgain"), std::string::npos);

  // What its RC_PARAMS say leads to the same counterexample at once, without a search.
  const std::string params = "RC_PARAMS='";
  const std::size_t from = found.find(params) + params.size();
  ASSERT_GT(from, params.size()) << found;
  const auto configuration =
      rc::detail::configFromString(found.substr(from, found.find('\'', from) - from));
  ASSERT_EQ(configuration.reproduce.size(), 1U);
  const auto again = search(property, configuration);
  ASSERT_TRUE(again.has_value());
  const auto story = [](const std::string& words) {  // without how long it took to find
    const std::size_t start = words.find("\n\n");
    return words.substr(start, words.find("\n\nReplay it") - start);
  };
  EXPECT_EQ(story(*again), story(found));
}

TEST(Counterexample, IsNotFoundWhereThereIsNone) {
  EXPECT_FALSE(counterexample([] { RC_ASSERT(*positions() % 8 == 0U); }));
}

}  // namespace
}  // namespace perfring::proptests
