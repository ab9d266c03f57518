// Counterexamples are short, readable and replayable.

#include "proptests/property.h"
#include <cstddef>

#include "harness/faults/kernel_faults.h"
#include "harness/rig/script_run.h"
#include "harness/script/script.h"
#include "proptests/scripts.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <rapidcheck/detail/Configuration.h>

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace perfring::proptests {
namespace {

using FaultyRun = CopyingRun<faults::WritesAWrongLostCount<ScriptCpu>>;

void loses_count() {
  const Script script = *scripts(everything());
  FaultyRun run{script.settings};
  run.run(script.steps);
  run.settle();
  expect_good(run);
}

// Returns the message with which always() fails the test for a property that does not hold.
std::string failure(const Property& property) {
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter{
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results};
    always(property, 1000);
  }
  return results.size() == 1 ? results.GetTestPartResult(0).message() : "";
}

TEST(CounterexampleTest, ACounterexampleIsAShortScript) {
  const auto found = counterexample(loses_count, Invariant::no_loss, /*shrunk=*/true);
  ASSERT_TRUE(found.has_value());
  EXPECT_NE(found->find("no_loss: a LOST of "), std::string::npos);
  EXPECT_LT(found->size(), 700U);
}

// `perfring sim --script` runs it, and `perfring diff --script` tries it on the live kernel.
TEST(CounterexampleTest, CounterexampleScriptViolatesSameInvariant) {
  const auto found = counterexample(loses_count, Invariant::no_loss, /*shrunk=*/true);
  ASSERT_TRUE(found.has_value());
  const std::string_view introduced = "by this script:\n";
  const std::size_t at = found->rfind(introduced);
  ASSERT_NE(at, std::string::npos) << *found;
  const auto script = script::parse_script(found->substr(at + introduced.size()));
  ASSERT_TRUE(script) << script.error();
  const auto again = rig::violation_of<FaultyRun>(*script);
  ASSERT_TRUE(again.has_value());
  EXPECT_NE(found->find("no_loss: " + again->message + "\n"), std::string::npos) << again->message;
  EXPECT_FALSE(rig::violation_of<rig::ScriptRunner<>>(*script));
}

TEST(CounterexampleTest, TheReplayLineLeadsToTheSameCounterexample) {
  const std::string found = failure(loses_count);
  EXPECT_NE(found.find("bazel test //proptests"), std::string::npos) << found;
  EXPECT_NE(
      found.find("--test_filter=CounterexampleTest.TheReplayLineLeadsToTheSameCounterexample"),
      std::string::npos);

  // The printed RC_PARAMS reproduce the counterexample directly, without a search.
  const std::string params = "RC_PARAMS='";
  const std::size_t from = found.find(params) + params.size();
  ASSERT_GT(from, params.size()) << found;
  const auto configuration =
      rc::detail::configFromString(found.substr(from, found.find('\'', from) - from));
  ASSERT_EQ(configuration.reproduce.size(), 1U);
  const auto again = search(loses_count, configuration);
  ASSERT_TRUE(again.has_value());
  const auto story = [](const std::string& words) {  // without the number of tries
    const std::size_t start = words.find("\n\n");
    return words.substr(start, words.find("\n\nReplay it") - start);
  };
  EXPECT_EQ(story(*again), story(found));
}

TEST(CounterexampleTest, AnAssertionThatFailsHasTheScriptOfItsRunToo) {
  const auto found = counterexample(
      [] {
        CopyingRun<> run{Settings{}};
        run.run(output(8));
        RC_ASSERT_INVARIANT(no_loss, run.ledger().totals().accepted == 2U);
      },
      Invariant::no_loss);
  ASSERT_TRUE(found.has_value());
  EXPECT_NE(found->find("by this script:\noutput 8\n"), std::string::npos) << *found;
}

TEST(CounterexampleTest, APropertyThatHoldsHasNoCounterexample) {
  EXPECT_FALSE(counterexample([] { RC_ASSERT_INVARIANT(no_loss, *positions() % 8 == 0U); },
                              Invariant::no_loss));
}

TEST(CounterexampleTest, AnotherInvariantsViolationDoesNotCount) {
  EXPECT_TRUE(counterexample(loses_count, Invariant::no_loss));
  for (const Invariant other : oracle::invariants()) {
    if (other == Invariant::no_loss) continue;
    EXPECT_FALSE(counterexample(loses_count, other)) << to_string(other);
  }
  EXPECT_FALSE(
      counterexample([] { fail({Invariant::intact, "no_loss: of words"}); }, Invariant::no_loss));
}

TEST(CounterexampleTest, AnExceptionDoesNotCountWhateverItsText) {
  for (const Invariant each : oracle::invariants()) {
    EXPECT_FALSE(counterexample([] { throw std::bad_alloc{}; }, each));
    EXPECT_FALSE(counterexample(
        [each] { throw std::runtime_error{"\n" + to_string(oracle::Violation{each, "thrown"})}; },
        each));
  }
}

TEST(CounterexampleTest, AnAssertionWithoutAnInvariantDoesNotCount) {
  for (const Invariant each : oracle::invariants()) {
    EXPECT_FALSE(counterexample([] { RC_ASSERT(*positions() % 8 == 1U); }, each));
    EXPECT_FALSE(counterexample([] { RC_FAIL("it is no_loss: of course"); }, each));
  }
}

}  // namespace
}  // namespace perfring::proptests
