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

template <class Plant>
void plant_kernel_faults(Plant plant) {
  plant(Named<NoControlDependency>{"no_control_dependency"});
  plant(Named<NoSmpWmb>{"no_smp_wmb"});
  plant(Named<PublishesFirst>{"publishes_first"});
  plant(Named<PublishesNested>{"publishes_nested"});
  plant(Named<StoresAfterPublishing>{"stores_after_publishing"});
  plant(Named<PublishesOffTheGrid>{"publishes_off_the_grid"});
  plant(Named<ShowsTheUnpublished>{"shows_the_unpublished"});
  plant(Named<Scribbles>{"scribbles"});
  plant(Named<IgnoresTail>{"ignores_tail"});
  plant(Named<SpaceOffBy8>{"space_off_by_8"});
  plant(Named<OneRecordTooMany>{"one_record_too_many"});
  plant(Named<RefusesInAnEmptyRing>{"refuses_in_an_empty_ring"});
  plant(Named<CountsLossesTwice>{"counts_losses_twice"});
  plant(Named<ForgetsLosses>{"forgets_losses"});
  plant(Named<WritesAWrongLostCount>{"writes_a_wrong_lost_count"});
  plant(Named<LeavesOutAWord>{"leaves_out_a_word"});
  plant(Named<TruncatesRaw>{"truncates_raw"});
  plant(Named<GivesTheRingUp>{"gives_the_ring_up"});
  plant(Named<WakesNobody>{"wakes_nobody"});
  plant(Named<WakesEverySecondTime>{"wakes_every_second_time"});
  plant(Named<SetsNoFlag>{"sets_no_flag"});
  plant(Named<WakesOneLate>{"wakes_one_late"});
  plant(Named<WakesFirst>{"wakes_first"});
  plant(Named<AnnouncesRefusals>{"announces_refusals"});
}

template <class Plant>
void plant_memory_faults(Plant plant) {
  plant(Named<NoAcquireFence>{"no_acquire_fence"});
  plant(Named<AcquireFenceFirst>{"acquire_fence_first"});
  plant(Named<HeadReadAgain>{"head_read_again"});
  plant(Named<NoFullFence>{"no_full_fence"});
  plant(Named<CommitsFirst>{"commits_first"});
  plant(Named<TailBehind>{"tail_behind"});
  plant(Named<TailAhead>{"tail_ahead"});
  plant(Named<CommitsOffTheGrid>{"commits_off_the_grid"});
  plant(Named<NeverCommits>{"never_commits"});
  plant(Named<ReadsBehind>{"reads_behind"});
  plant(Named<ReadsAhead>{"reads_ahead"});
  plant(Named<ShortensSamples>{"shortens_samples"});
  plant(Named<DropsTheSign>{"drops_the_sign"});
}

// Around lib's Ring.
template <class Plant>
void plant_consumer_faults(Plant plant) {
  plant(Named<ForgetsTheTail>{"forgets_the_tail"});
  plant(Named<RepeatsTheBroken>{"repeats_the_broken"});
  plant(Named<DropsTheRest>{"drops_the_rest"});
  plant(Named<ForgetsOnThrow>{"forgets_on_throw"});
  plant(Named<CommitsEarly>{"commits_early"});
  plant(Named<CommitsEach>{"commits_each"});
  plant(Named<CommitsEachUnfenced>{"commits_each_unfenced"});
  plant(Named<LooksAfterwards>{"looks_afterwards"});
  plant(Named<ForgetsLost>{"forgets_lost"});
  plant(Named<IgnoresBreak>{"ignores_break"});
  plant(Named<TakesOneAtATime>{"takes_one_at_a_time"});
  plant(Named<DropsTheLast>{"drops_the_last"});
  plant(Named<DeliversTwice>{"delivers_twice"});
  plant(Named<SwapsTwo>{"swaps_two"});
  plant(Named<KeepsSlices>{"keeps_slices"});
  plant(Named<SleepsOnTheRest>{"sleeps_on_the_rest"});
}

// By lib's Cursor, in its place.
template <class Plant>
void plant_cursor_faults(Plant plant) {
  plant(Named<ByReleasesEarly>{"releases_early"});
  plant(Named<ByReleasesPast>{"releases_past"});
}

// Loops over positions, in place of lib's Ring.
template <class Plant>
void plant_loop_faults(Plant plant) {
  plant(Named<Believes>{"believes"});
  plant(Named<PositionsOf64Bits>{"positions_of_64_bits"});
  plant(Named<LeavesTheLast>{"leaves_the_last"});
  plant(Named<IgnoresTheWrap>{"ignores_the_wrap"});
}

// All of them, each as the harness plants its kind. A fault around Ring and one in its place are
// planted alike.
template <class Entry, class Kernel, class Memory, class Consumer>
std::vector<Entry> plant_all(Kernel kernel, Memory memory, Consumer consumer) {
  std::vector<Entry> all;
  const auto consumer_entry = [&](auto fault) { all.push_back(consumer(fault)); };
  plant_kernel_faults([&](auto fault) { all.push_back(kernel(fault)); });
  plant_memory_faults([&](auto fault) { all.push_back(memory(fault)); });
  plant_consumer_faults(consumer_entry);
  plant_cursor_faults(consumer_entry);
  plant_loop_faults(consumer_entry);
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
