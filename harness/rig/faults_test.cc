// Each fault of the catalogue, under random scripts: found, and as the violation of which
// invariant; or not to be seen by one thread, and why.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/rig/script_run.h"
#include "harness/script/generate.h"

namespace perfring::rig {
namespace {

using oracle::Invariant;
using oracle::Violation;
using script::Script;

// What the oracle can judge: RAW samples, forward, by a consumer that is honest.
Script checkable(Script script) {
  script.settings.sample_type = PERF_SAMPLE_RAW;
  script.settings.write_backward = script.settings.overwrite = false;
  std::erase_if(script.steps,
                [](const script::Step& step) { return step.action == script::Action::Tail; });
  return script;
}

Script script_of(std::uint64_t seed) {
  return checkable(script::generate(
      seed,
      {.steps_max = 60, .pages_max = 2, .any_word = true, .any_start = true, .nested = true}));
}

using Unseen = const char*;

struct Fault {
  const char* name;
  std::variant<Invariant, Unseen> outcome;  // what finds it, or why it cannot be seen here
  std::optional<Violation> (*run)(const Script&);
};

template <template <class> class F>
constexpr auto kernel = violation_of<ScriptRunner<F<ScriptCpu>>>;
template <template <class> class F>
constexpr auto memory = violation_of<ScriptRunner<ScriptCpu, Ring<F<CheckedMemory>>>>;
template <template <class> class F>
constexpr auto consumer = violation_of<ScriptRunner<ScriptCpu, F<CheckedMemory>>>;

constexpr Unseen kInOrder =
    "one thread plays kernel and consumer, and sees all stores at once and in program order";
constexpr Unseen kNobodySleeps = "nobody sleeps: poll looks at the flag, which is right";
constexpr Unseen kHostile = "no kernel writes a raw size of 2^31 and more: hostile rings have them";

const Fault kFaults[] = {
    {"no_control_dependency", kInOrder, kernel<faults::NoControlDependency>},
    {"no_smp_wmb", kInOrder, kernel<faults::NoSmpWmb>},
    {"publishes_first", Invariant::intact, kernel<faults::PublishesFirst>},
    {"publishes_nested", Invariant::intact, kernel<faults::PublishesNested>},
    {"stores_after_publishing", Invariant::intact, kernel<faults::StoresAfterPublishing>},
    {"publishes_off_the_grid", Invariant::no_invention, kernel<faults::PublishesOffTheGrid>},
    {"ignores_tail", Invariant::no_early_release, kernel<faults::IgnoresTail>},
    {"space_off_by_8", Invariant::no_loss, kernel<faults::SpaceOffBy8>},
    {"refuses_in_an_empty_ring", Invariant::no_loss, kernel<faults::RefusesInAnEmptyRing>},
    {"counts_losses_twice", Invariant::no_loss, kernel<faults::CountsLossesTwice>},
    {"forgets_losses", Invariant::no_loss, kernel<faults::ForgetsLosses>},
    {"writes_a_wrong_lost_count", Invariant::no_loss, kernel<faults::WritesAWrongLostCount>},
    {"leaves_out_a_word", Invariant::intact, kernel<faults::LeavesOutAWord>},
    {"truncates_raw", Invariant::intact, kernel<faults::TruncatesRaw>},
    {"wakes_nobody", kNobodySleeps, kernel<faults::WakesNobody>},
    {"sets_no_flag", Invariant::awake, kernel<faults::SetsNoFlag>},
    {"wakes_one_late", Invariant::awake, kernel<faults::WakesOneLate>},
    {"wakes_first", kNobodySleeps, kernel<faults::WakesFirst>},
    {"announces_refusals", Invariant::awake, kernel<faults::AnnouncesRefusals>},
    {"no_acquire_fence", kInOrder, memory<faults::NoAcquireFence>},
    {"no_full_fence", kInOrder, memory<faults::NoFullFence>},
    {"commits_first", Invariant::tail_honest, memory<faults::CommitsFirst>},
    {"tail_behind", Invariant::tail_honest, memory<faults::TailBehind>},
    {"commits_off_the_grid", Invariant::tail_honest, memory<faults::CommitsOffTheGrid>},
    {"never_commits", Invariant::tail_honest, memory<faults::NeverCommits>},
    {"drops_the_sign", kHostile, memory<faults::DropsTheSign>},
    {"forgets_the_tail", Invariant::intact, consumer<faults::ForgetsTheTail>},
    {"repeats_the_broken", Invariant::tail_honest, consumer<faults::RepeatsTheBroken>},
    {"drops_the_rest", Invariant::tail_honest, consumer<faults::DropsTheRest>},
    {"forgets_on_throw", Invariant::tail_honest, consumer<faults::ForgetsOnThrow>},
    {"commits_early", Invariant::tail_honest, consumer<faults::CommitsEarly>},
    {"forgets_lost", Invariant::no_loss, consumer<faults::ForgetsLost>},
    {"ignores_break", Invariant::once, consumer<faults::IgnoresBreak>},
    {"drops_the_last", Invariant::tail_honest, consumer<faults::DropsTheLast>},
    {"delivers_twice", Invariant::once, consumer<faults::DeliversTwice>},
    {"believes", Invariant::tail_honest, consumer<faults::Believes>},
};

class FaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(FaultTest, EachFaultIsFoundAsTheInvariantThatItViolates) {
  constexpr std::uint64_t kScripts = 2'000;
  std::string found = "nothing";
  std::string message;
  for (std::uint64_t seed = 1; seed <= kScripts && found == "nothing"; ++seed) {
    const auto violation = GetParam().run(script_of(seed));
    if (!violation) continue;
    found = to_string(violation->invariant);
    message = violation->message + ", by seed " + std::to_string(seed);
  }
  const auto* const invariant = std::get_if<Invariant>(&GetParam().outcome);
  EXPECT_EQ(found, invariant != nullptr ? to_string(*invariant) : "nothing") << message;
}
INSTANTIATE_TEST_SUITE_P(Each, FaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& row) { return std::string{row.param.name}; });

TEST(FaultlessTest, NothingIsFoundWithoutAFault) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    const auto violation = violation_of<ScriptRunner<>>(script_of(seed));
    ASSERT_FALSE(violation.has_value()) << violation->message << ", by seed " << seed;
  }
}

}  // namespace
}  // namespace perfring::rig
