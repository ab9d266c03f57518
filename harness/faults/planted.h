#ifndef HARNESS_FAULTS_PLANTED_H_
#define HARNESS_FAULTS_PLANTED_H_

// The faults that are templates, by their names in the catalogue: over a kernel::Cpu, over a
// Memory, or consumers over a Memory. Each harness plants all of them in its own types.

#include <algorithm>
#include <span>
#include <string_view>
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

// Returns all faults, each planted by the harness's function for its kind. A fault around Ring and
// one in its place are planted in the same way. (Each fault is a separate type. A harness that
// creates objects of them uses `new`, because std::make_unique takes g++ 15 ms for each type.)
template <class Entry, class Kernel, class Memory, class Consumer>
std::vector<Entry> plant_all(Kernel kernel, Memory memory, Consumer consumer) {
  return {
      kernel(Named<NoControlDependency>{"no_control_dependency"}),
      kernel(Named<NoSmpWmb>{"no_smp_wmb"}),
      kernel(Named<PublishesFirst>{"publishes_first"}),
      kernel(Named<PublishesNested>{"publishes_nested"}),
      kernel(Named<StoresAfterPublishing>{"stores_after_publishing"}),
      kernel(Named<PublishesOffTheGrid>{"publishes_off_the_grid"}),
      kernel(Named<ShowsTheUnpublished>{"shows_the_unpublished"}),
      kernel(Named<Scribbles>{"scribbles"}),
      kernel(Named<IgnoresTail>{"ignores_tail"}),
      kernel(Named<SpaceOffBy8>{"space_off_by_8"}),
      kernel(Named<OneRecordTooMany>{"one_record_too_many"}),
      kernel(Named<RefusesInAnEmptyRing>{"refuses_in_an_empty_ring"}),
      kernel(Named<CountsLossesTwice>{"counts_losses_twice"}),
      kernel(Named<ForgetsLosses>{"forgets_losses"}),
      kernel(Named<WritesAWrongLostCount>{"writes_a_wrong_lost_count"}),
      kernel(Named<LeavesOutAWord>{"leaves_out_a_word"}),
      kernel(Named<TruncatesRaw>{"truncates_raw"}),
      kernel(Named<GivesTheRingUp>{"gives_the_ring_up"}),
      kernel(Named<WakesNobody>{"wakes_nobody"}),
      kernel(Named<WakesEverySecondTime>{"wakes_every_second_time"}),
      kernel(Named<SetsNoFlag>{"sets_no_flag"}),
      kernel(Named<WakesOneLate>{"wakes_one_late"}),
      kernel(Named<WakesFirst>{"wakes_first"}),
      kernel(Named<AnnouncesRefusals>{"announces_refusals"}),
      memory(Named<NoAcquireFence>{"no_acquire_fence"}),
      memory(Named<AcquireFenceFirst>{"acquire_fence_first"}),
      memory(Named<HeadReadAgain>{"head_read_again"}),
      memory(Named<NoFullFence>{"no_full_fence"}),
      memory(Named<CommitsFirst>{"commits_first"}),
      memory(Named<TailBehind>{"tail_behind"}),
      memory(Named<TailAhead>{"tail_ahead"}),
      memory(Named<CommitsOffTheGrid>{"commits_off_the_grid"}),
      memory(Named<NeverCommits>{"never_commits"}),
      memory(Named<TakesBackForDamage>{"takes_back_for_damage"}),
      memory(Named<ReadsBehind>{"reads_behind"}),
      memory(Named<ReadsAhead>{"reads_ahead"}),
      memory(Named<ShortensSamples>{"shortens_samples"}),
      memory(Named<DropsTheSign>{"drops_the_sign"}),
      // Around lib's Ring.
      consumer(Named<ForgetsTheTail>{"forgets_the_tail"}),
      consumer(Named<RepeatsTheBroken>{"repeats_the_broken"}),
      consumer(Named<DropsTheRest>{"drops_the_rest"}),
      consumer(Named<ForgetsOnThrow>{"forgets_on_throw"}),
      consumer(Named<CommitsEarly>{"commits_early"}),
      consumer(Named<CommitsEach>{"commits_each"}),
      consumer(Named<CommitsEachUnfenced>{"commits_each_unfenced"}),
      consumer(Named<LooksAfterwards>{"looks_afterwards"}),
      consumer(Named<ForgetsLost>{"forgets_lost"}),
      consumer(Named<IgnoresBreak>{"ignores_break"}),
      consumer(Named<TakesOneAtATime>{"takes_one_at_a_time"}),
      consumer(Named<DropsTheLast>{"drops_the_last"}),
      consumer(Named<DeliversTwice>{"delivers_twice"}),
      consumer(Named<SwapsTwo>{"swaps_two"}),
      consumer(Named<KeepsSlices>{"keeps_slices"}),
      consumer(Named<SleepsOnTheRest>{"sleeps_on_the_rest"}),
      // Consumers built on lib's Cursor, in place of lib's Ring.
      consumer(Named<ByReleasesEarly>{"releases_early"}),
      consumer(Named<ByReleasesPast>{"releases_past"}),
      // Loops over positions, in place of lib's Ring.
      consumer(Named<Believes>{"believes"}),
      consumer(Named<PositionsOf64Bits>{"positions_of_64_bits"}),
      consumer(Named<LeavesTheLast>{"leaves_the_last"}),
      consumer(Named<IgnoresTheWrap>{"ignores_the_wrap"}),
  };
}

// Returns nullptr if no fault has this name.
template <class Entry>
const Entry* find_planted(std::span<const Entry> planted, std::string_view name) {
  const auto found = std::ranges::find(planted, name, &Entry::name);
  return found == planted.end() ? nullptr : &*found;
}

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_PLANTED_H_
