// Where a drain stops makes no difference to what is delivered, only to when. And a script of any
// kind violates nothing; with a fault of harness/faults planted in the kernel or the consumer, one
// does. Faults that take a property of their own have it in the other tests.

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/faults/catalogue.h"
#include "harness/rig/faults.h"
#include "proptests/property.h"
#include "proptests/run.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::Seen;

// Break or throw at any event: so many events were delivered, and the next drain starts with the
// one after.
template <class Consumer>
void resumes() {
  const auto stops = *steps({{Kind::Break, Kind::Throw}});
  CopyingRun<ScriptCpu, Consumer> run{*settings()};
  run.run(*steps({{Kind::Output, Kind::Output, Kind::Pause, Kind::Resume}, 1}));
  for (const Step& stop : stops) {
    const std::uint64_t events = static_cast<std::uint64_t>(run.run(stop));
    expect_good(run);
    RC_ASSERT(events == stop.number || !run.readable());
  }
  run.settle();
  expect_good(run);
}

TEST(ResumeTest, TheNextDrainStartsAfterBreakAndThrowAtAnyEvent) {
  always(resumes<Core>);
}
TEST(ResumeTest, TheNextLookOfACursorStartsAfterBreakAndThrowAtAnyEvent) {
  always(resumes<CursorCore>);
}
TEST(ResumeTest, FindsAConsumerThatRepeatsTheBroken) {
  EXPECT_TRUE(counterexample(resumes<faults::RepeatsTheBroken<CheckedMemory>>));
}
TEST(ResumeTest, FindsAConsumerThatForgetsOnThrow) {
  EXPECT_TRUE(counterexample(resumes<faults::ForgetsOnThrow<CheckedMemory>>));
}

// The same ring, drained at once and drained in pieces.
template <class Consumer>
void splits() {
  const Settings of = *settings();
  const auto written = *steps({{Kind::Output, Kind::Output, Kind::Pause, Kind::Resume}, 1});
  const auto pieces = *rc::gen::container<std::vector<Step>>(rc::gen::build<Step>(
      rc::gen::set(&Step::action, one_of<Action>({Action::Drain, Action::Throw})),
      rc::gen::set(&Step::number, rc::gen::inRange<std::uint64_t>(1, 12))));
  CopyingRun<> whole{of};
  CopyingRun<ScriptCpu, Consumer> split{of};
  whole.run(written);
  split.run(written);
  whole.run(kDrain);
  split.run(pieces);
  split.run(kDrain);
  expect_good(whole);
  RC_ASSERT(split.take_seen() == whole.take_seen());
  RC_ASSERT(split.ring().page().data_tail == whole.ring().page().data_tail);
}

TEST(SplitDrainTest, AnySplitGivesTheSameEvents) {
  always(splits<Core>);
}
TEST(SplitDrainTest, AnySplitByACursorGivesTheSameEvents) {
  always(splits<CursorCore>);
}
TEST(SplitDrainTest, FindsAConsumerThatDropsTheRest) {
  EXPECT_TRUE(counterexample(splits<faults::DropsTheRest<CheckedMemory>>));
}

class AnyScriptTest : public ::testing::TestWithParam<faults::Fault> {};

std::vector<faults::Fault> to_be_found() {
  std::vector<faults::Fault> found;
  std::ranges::copy_if(faults::catalogue(), std::back_inserter(found), [](const auto& fault) {
    const auto* const test = std::get_if<const char*>(&fault.property);
    return test != nullptr && std::string_view{*test} == faults::kAnyScript;
  });
  return found;
}

TEST_P(AnyScriptTest, FindsTheFault) {
  const rig::ScriptFault* const planted = rig::find_planted(GetParam().name);
  ASSERT_NE(planted, nullptr);
  Mix mix = everything();
  mix.kinds.insert(mix.kinds.end(), 2, Kind::Poll);
  EXPECT_TRUE(counterexample([planted, mix] {
    const Script script = *scripts(mix);
    const auto violation = planted->run(script);
    if (!violation) return;
    RC_FAIL(fmt::format("{}: {}, by this script:\n{}", to_string(violation->invariant),
                        violation->message, to_text(script)));
  }));
}

INSTANTIATE_TEST_SUITE_P(, AnyScriptTest, ::testing::ValuesIn(to_be_found()),
                         [](const auto& named) { return std::string{named.param.name}; });

}  // namespace
}  // namespace perfring::proptests
