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
      kernel(Named<PublishesBeforeWriting>{"publishes_before_writing"}),
      kernel(Named<PublishesNested>{"publishes_nested"}),
      kernel(Named<StoresAfterPublishing>{"stores_after_publishing"}),
      kernel(Named<PublishesUnaligned>{"publishes_unaligned"}),
      kernel(Named<ExposesReservations>{"exposes_reservations"}),
      kernel(Named<CorruptsRingStart>{"corrupts_ring_start"}),
      kernel(Named<IgnoresTail>{"ignores_tail"}),
      kernel(Named<SpaceOffBy8>{"space_off_by_8"}),
      kernel(Named<OneRecordTooMany>{"one_record_too_many"}),
      kernel(Named<RefusesInAnEmptyRing>{"refuses_in_an_empty_ring"}),
      kernel(Named<CountsLossesTwice>{"counts_losses_twice"}),
      kernel(Named<ForgetsLosses>{"forgets_losses"}),
      kernel(Named<WritesAWrongLostCount>{"writes_a_wrong_lost_count"}),
      kernel(Named<OmitsLastWord>{"omits_last_word"}),
      kernel(Named<TruncatesRaw>{"truncates_raw"}),
      kernel(Named<DetachesRing>{"detaches_ring"}),
      kernel(Named<WakesNobody>{"wakes_nobody"}),
      kernel(Named<WakesEverySecondTime>{"wakes_every_second_time"}),
      kernel(Named<SetsNoPollFlag>{"sets_no_poll_flag"}),
      kernel(Named<WakesOneRecordLate>{"wakes_one_record_late"}),
      kernel(Named<WakesBeforePublishing>{"wakes_before_publishing"}),
      kernel(Named<AnnouncesRefusals>{"announces_refusals"}),
      memory(Named<NoAcquireFence>{"no_acquire_fence"}),
      memory(Named<AcquireFenceFirst>{"acquire_fence_first"}),
      memory(Named<HeadReadAgain>{"head_read_again"}),
      memory(Named<NoFullFence>{"no_full_fence"}),
      memory(Named<CommitsBeforeReading>{"commits_before_reading"}),
      memory(Named<TailTooLow>{"tail_too_low"}),
      memory(Named<TailTooHigh>{"tail_too_high"}),
      memory(Named<CommitsUnaligned>{"commits_unaligned"}),
      memory(Named<NeverCommits>{"never_commits"}),
      memory(Named<TreatsRetreatAsDamage>{"treats_retreat_as_damage"}),
      memory(Named<Underreads>{"underreads"}),
      memory(Named<Overreads>{"overreads"}),
      memory(Named<ShortensSamples>{"shortens_samples"}),
      memory(Named<IgnoresTopSizeBit>{"ignores_top_size_bit"}),
      // Around lib's Ring.
      consumer(Named<DropsSecondSlice>{"drops_second_slice"}),
      consumer(Named<RedeliversAfterBreak>{"redelivers_after_break"}),
      consumer(Named<CommitsAllOnBreak>{"commits_all_on_break"}),
      consumer(Named<NoCommitOnThrow>{"no_commit_on_throw"}),
      consumer(Named<CommitsEarly>{"commits_early"}),
      consumer(Named<CommitsEach>{"commits_each"}),
      consumer(Named<CommitsEachUnfenced>{"commits_each_unfenced"}),
      consumer(Named<ReadsAfterDrain>{"reads_after_drain"}),
      consumer(Named<ForgetsLost>{"forgets_lost"}),
      consumer(Named<IgnoresBreak>{"ignores_break"}),
      consumer(Named<TakesOneAtATime>{"takes_one_at_a_time"}),
      consumer(Named<DropsLastEvent>{"drops_last_event"}),
      consumer(Named<DeliversTwice>{"delivers_twice"}),
      consumer(Named<SwapsTwo>{"swaps_two"}),
      consumer(Named<KeepsSlices>{"keeps_slices"}),
      consumer(Named<SleepsAfterBreak>{"sleeps_after_break"}),
      // Consumers built on lib's Cursor, in place of lib's Ring.
      consumer(Named<ReleasesEarlyRing>{"releases_early"}),
      consumer(Named<ReleasesUndeliveredRing>{"releases_undelivered"}),
      // Loops over positions, in place of lib's Ring.
      consumer(Named<TrustsRecordSizes>{"trusts_record_sizes"}),
      consumer(Named<PositionsOf64Bits>{"positions_of_64_bits"}),
      consumer(Named<LeavesLastRecord>{"leaves_last_record"}),
      consumer(Named<IgnoresWrap>{"ignores_wrap"}),
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
