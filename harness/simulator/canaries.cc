#include "harness/simulator/canaries.h"

#include <algorithm>
#include <array>

#include "harness/faults/kernel_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/simulator/engine.h"
#include "harness/simulator/faulty_consumers.h"

namespace perfring::simulator {
namespace {

using oracle::Invariant;

template <template <class> class Fault>
Outcome kernel(const Plan& plan, const Observer& observer) {
  return simulate_with<Fault<SimulatedCpu>, RingDrain<>>(plan, observer);
}

// In front of lib's drain, in the Memory behind it, or in a drain of its own.
template <template <class> class Fault>
Outcome consumer(const Plan& plan, const Observer& observer) {
  return simulate_with<SimulatedCpu, Fault<RingDrain<>>>(plan, observer);
}
template <template <class> class Fault>
Outcome memory(const Plan& plan, const Observer& observer) {
  return simulate_with<SimulatedCpu, RingDrain<Fault<SimulatedMemory>>>(plan, observer);
}
template <template <class> class Fault>
Outcome loop(const Plan& plan, const Observer& observer) {
  return simulate_with<SimulatedCpu, Fault<Loop>>(plan, observer);
}

constexpr std::array kCanaries{
    Canary{"publishes_first", "a kernel that stores data_head, and then the record",
           Invariant::intact,
           "was delivered with other bytes|Bad[A-Za-z]+ of [0-9]+ bytes, where due was", "bursts",
           "", kernel<faults::PublishesFirst>},
    Canary{"publishes_nested",
           "a kernel whose inner writers publish, while the outer one's record is unfinished",
           Invariant::intact,
           "was delivered with other bytes|Bad[A-Za-z]+ of [0-9]+ bytes, where due was",
           "nested_storm", "", kernel<faults::PublishesNested>},
    Canary{"counts_losses_twice", "a kernel that counts each refused record twice",
           Invariant::no_loss, "a LOST of [0-9]+ where [0-9]+ were refused", "full_ring", "",
           kernel<faults::CountsLossesTwice>},
    Canary{"forgets_losses", "a kernel that counts no refused record", Invariant::no_loss,
           "[0-9]+ bytes reserved at [0-9]+, where [0-9]+ at [0-9]+ were due", "full_ring", "",
           kernel<faults::ForgetsLosses>},
    Canary{"space_off_by_8", "a kernel that takes 8 bytes too many for free",
           Invariant::no_early_release, "unread: a ring of 4096 holds 4088", "full_ring", "",
           kernel<faults::SpaceOffBy8>},
    Canary{"ignores_tail", "a kernel that overwrites what is unread", Invariant::no_early_release,
           "unread: a ring of 4096 holds 4088", "full_ring", "", kernel<faults::IgnoresTail>},
    Canary{"leaves_out_a_word", "a kernel that leaves out the last word of a payload",
           Invariant::intact, "sequence 0 of [0-9]+ bytes was delivered with other bytes", "bursts",
           "", kernel<faults::LeavesOutAWord>},
    Canary{"wakes_nobody", "a kernel that sets its flag, but wakes nobody who waits",
           Invariant::awake, "the consumer waits for a wakeup beside [0-9]+ records", "bursts", "",
           kernel<faults::WakesNobody>},
    Canary{"drops_the_last", "a consumer that swallows the last event of each drain",
           Invariant::tail_honest, "though nothing was delivered|after a drain whose events end at",
           "bursts", "", consumer<DropsTheLast>},
    Canary{"leaves_the_last", "a consumer that takes a ring with one record for empty",
           Invariant::no_loss, "the ring says empty, but 1 records are still in it", "bursts",
           "watermark 64\npayload_max 16\nthrow_one_in 0\n", loop<LeavesTheLast>},
    Canary{"delivers_twice", "a consumer that delivers each event twice", Invariant::once,
           "was delivered again, where due was", "bursts", "", consumer<DeliversTwice>},
    Canary{"swaps_two", "a consumer that delivers the second of two events first", Invariant::order,
           "was delivered after what follows it", "bursts", "", consumer<SwapsTwo>},
    Canary{"keeps_slices", "a consumer that looks at a slice of an earlier drain", Invariant::once,
           "was delivered again, where due was", "bursts", "", consumer<KeepsSlices>, true},
    Canary{"forgets_lost", "a consumer that passes LOST over", Invariant::no_loss,
           "the LOST in front of .* was not delivered", "full_ring", "", consumer<ForgetsLost>},
    Canary{"waits_too_soon", "a consumer that breaks off a drain, and then waits", Invariant::awake,
           "the consumer waits for a wakeup beside [0-9]+ records", "bursts", "",
           consumer<WaitsTooSoon>},
    Canary{"tail_behind", "a consumer that commits 8 bytes less than it consumed",
           Invariant::tail_honest,
           "data_tail moved by [0-9]+ in a drain whose [0-9]+ events took at least", "bursts", "",
           memory<faults::TailBehind>},
    Canary{"never_commits", "a consumer that never stores data_tail", Invariant::tail_honest,
           "data_tail moved by 0 in a drain whose", "bursts", "", memory<faults::NeverCommits>},
    Canary{"commits_early", "a consumer that stores data_tail, and then looks at the records",
           Invariant::tail_honest, "while the drain.s event 1 was still to be delivered", "bursts",
           "", loop<CommitsEarly>},
    Canary{"commits_each", "a consumer that stores data_tail after each event",
           Invariant::tail_honest, "while the drain.s event [0-9]+ was still to be delivered",
           "bursts", "", loop<CommitsEach>},
    Canary{"positions_of_64_bits",
           "a consumer that compares 64-bit positions, where a 32-bit kernel wraps",
           Invariant::no_invention, "that nobody wrote, where due was", "crossing_4gib",
           "payload_min 116\npayload_max 116\n", loop<PositionsOf64Bits>, true},
    Canary{"ignores_the_wrap", "a consumer that reads on where the ring ends", Invariant::in_ring,
           "bytes at offset [0-9]+ of a ring of", "bursts", "", loop<IgnoresTheWrap>},
};

}  // namespace

Settings settings_of(const Canary& canary) {
  const Settings scenario = *parse_settings(find_scenario(canary.scenario)->lines, canary.scenario);
  return *parse_settings(canary.lines, canary.name, scenario);
}

std::span<const Canary> canaries() {
  return kCanaries;
}

const Canary* find_canary(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kCanaries, [&](const Canary& canary) { return canary.name == name; });
  return found == kCanaries.end() ? nullptr : found;
}

}  // namespace perfring::simulator
