// Kernels before 5.2: data_head goes back for a moment if an interrupt outputs during the end of
// another output (K59). The consumer treats such a ring as empty, and delivers no record twice and
// loses none.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "harness/faults/memory_faults.h"
#include "harness/rig/script_run.h"
#include "harness/rig/watched_cpu.h"
#include "perfring/ring/ring.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

rc::Gen<std::uint64_t> up_to(std::uint64_t most) {
  return rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(0, most + 1));
}

// An output. At one of its moments an interrupt outputs and another CPU drains; two more drains
// follow soon after.
rc::Gen<std::vector<Step>> interrupted_outputs() {
  const auto of = [](std::uint64_t length, std::uint64_t at, std::uint64_t second,
                     std::uint64_t third) {
    Step interrupt = output(length / 2);
    interrupt.depth = 1;
    interrupt.at = at;
    std::vector<Step> steps{output(length), interrupt};
    for (const std::uint64_t later : {std::uint64_t{0}, second, second + third}) {
      Step drain = kDrain;
      drain.depth = 1;
      drain.at = at + later;
      steps.push_back(drain);
    }
    return steps;
  };
  return rc::gen::apply(of, up_to(100), up_to(30), up_to(3), up_to(3));
}

template <class Consumer>
void survives() {
  Settings of = *settings();
  of.before_5_2 = true;
  CopyingRun<ScriptCpu, Consumer> run{of};
  for (const auto& each : *rc::gen::container<std::vector<std::vector<Step>>>(
           rc::gen::resize(30, interrupted_outputs()))) {
    run.run(each);
    expect_good(run);
  }
  run.settle();
  expect_good(run);
  RC_ASSERT_INVARIANT(bounded, !run.readable());
}

TEST(BeforeKernel52Test, ADrainDeliversEachRecordOnce) {
  always(survives<Core>);
}
TEST(BeforeKernel52Test, ACursorHandsOutEachRecordOnce) {
  always(survives<CursorCore>);
}
TEST(BeforeKernel52Test, FindsConsumerMistakingHeadRetreatForDamage) {
  EXPECT_TRUE(counterexample(survives<Ring<faults::TreatsRetreatAsDamage<CheckedMemory>>>,
                             Invariant::intact));
}

}  // namespace
}  // namespace perfring::proptests
