#ifndef HARNESS_FAULTS_PLANTED_H_
#define HARNESS_FAULTS_PLANTED_H_

// The faults that are templates, each by its name in the catalogue: over a kernel::Cpu, over a
// Memory, or a consumer over a Memory. A harness plants all of them in its own.

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/faults/memory_faults.h"

namespace perfring::faults {

template <template <class> class F>
struct Named {
  const char* name;
};

inline constexpr std::tuple kKernelFaults{
    Named<NoControlDependency>{"no_control_dependency"},
    Named<NoSmpWmb>{"no_smp_wmb"},
    Named<PublishesFirst>{"publishes_first"},
    Named<PublishesNested>{"publishes_nested"},
    Named<StoresAfterPublishing>{"stores_after_publishing"},
    Named<PublishesOffTheGrid>{"publishes_off_the_grid"},
    Named<ShowsTheUnpublished>{"shows_the_unpublished"},
    Named<Scribbles>{"scribbles"},
    Named<IgnoresTail>{"ignores_tail"},
    Named<SpaceOffBy8>{"space_off_by_8"},
    Named<OneRecordTooMany>{"one_record_too_many"},
    Named<RefusesInAnEmptyRing>{"refuses_in_an_empty_ring"},
    Named<CountsLossesTwice>{"counts_losses_twice"},
    Named<ForgetsLosses>{"forgets_losses"},
    Named<WritesAWrongLostCount>{"writes_a_wrong_lost_count"},
    Named<LeavesOutAWord>{"leaves_out_a_word"},
    Named<TruncatesRaw>{"truncates_raw"},
    Named<GivesTheRingUp>{"gives_the_ring_up"},
    Named<WakesNobody>{"wakes_nobody"},
    Named<WakesEverySecondTime>{"wakes_every_second_time"},
    Named<SetsNoFlag>{"sets_no_flag"},
    Named<WakesOneLate>{"wakes_one_late"},
    Named<WakesFirst>{"wakes_first"},
    Named<AnnouncesRefusals>{"announces_refusals"},
};

inline constexpr std::tuple kMemoryFaults{
    Named<NoAcquireFence>{"no_acquire_fence"},
    Named<AcquireFenceFirst>{"acquire_fence_first"},
    Named<HeadReadAgain>{"head_read_again"},
    Named<NoFullFence>{"no_full_fence"},
    Named<CommitsFirst>{"commits_first"},
    Named<TailBehind>{"tail_behind"},
    Named<TailAhead>{"tail_ahead"},
    Named<CommitsOffTheGrid>{"commits_off_the_grid"},
    Named<NeverCommits>{"never_commits"},
    Named<ReadsBehind>{"reads_behind"},
    Named<ReadsAhead>{"reads_ahead"},
    Named<ShortensSamples>{"shortens_samples"},
    Named<DropsTheSign>{"drops_the_sign"},
};

// Around lib's Ring.
inline constexpr std::tuple kConsumerFaults{
    Named<ForgetsTheTail>{"forgets_the_tail"},
    Named<RepeatsTheBroken>{"repeats_the_broken"},
    Named<DropsTheRest>{"drops_the_rest"},
    Named<ForgetsOnThrow>{"forgets_on_throw"},
    Named<CommitsEarly>{"commits_early"},
    Named<CommitsEach>{"commits_each"},
    Named<CommitsEachUnfenced>{"commits_each_unfenced"},
    Named<LooksAfterwards>{"looks_afterwards"},
    Named<ForgetsLost>{"forgets_lost"},
    Named<IgnoresBreak>{"ignores_break"},
    Named<TakesOneAtATime>{"takes_one_at_a_time"},
    Named<DropsTheLast>{"drops_the_last"},
    Named<DeliversTwice>{"delivers_twice"},
    Named<SwapsTwo>{"swaps_two"},
    Named<KeepsSlices>{"keeps_slices"},
    Named<SleepsOnTheRest>{"sleeps_on_the_rest"},
};

// By lib's Cursor, in its place.
inline constexpr std::tuple kCursorFaults{
    Named<ByReleasesEarly>{"releases_early"},
    Named<ByReleasesPast>{"releases_past"},
};

// Loops over positions, in place of lib's Ring.
inline constexpr std::tuple kLoopFaults{
    Named<Believes>{"believes"},
    Named<PositionsOf64Bits>{"positions_of_64_bits"},
    Named<LeavesTheLast>{"leaves_the_last"},
    Named<IgnoresTheWrap>{"ignores_the_wrap"},
};

// All of them, each as the harness plants its kind. A fault around Ring and one in its place are
// planted alike.
template <class Entry, class Kernel, class Memory, class Consumer>
std::vector<Entry> plant_all(Kernel kernel, Memory memory, Consumer consumer) {
  std::vector<Entry> all;
  const auto plant = [&all](const auto& faults, auto one) {
    std::apply([&](auto... each) { (all.push_back(one(each)), ...); }, faults);
  };
  plant(kKernelFaults, kernel);
  plant(kMemoryFaults, memory);
  plant(kConsumerFaults, consumer);
  plant(kCursorFaults, consumer);
  plant(kLoopFaults, consumer);
  return all;
}

// nullptr if none has this name.
template <class Entry>
const Entry* find_planted(std::span<const Entry> planted, std::string_view name) {
  const auto found = std::ranges::find(planted, name, &Entry::name);
  return found == planted.end() ? nullptr : &*found;
}

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_PLANTED_H_
