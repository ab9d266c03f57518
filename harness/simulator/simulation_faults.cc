#include "harness/simulator/simulation_faults.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness/faults/planted.h"
#include "harness/simulator/engine.h"
#include "harness/simulator/simulated_consumer.h"
#include "harness/simulator/simulated_producer.h"
#include "perfring/ring/ring.h"

namespace perfring::simulator {
namespace {

constexpr auto plant_kernel = []<template <class> class F>(faults::Named<F> fault) {
  return SimulationFault{fault.name, simulate_with<F<SimulatedCpu>, RingDrain<>>};
};
// Plants the fault in the Memory under lib's Ring.
constexpr auto plant_memory = []<template <class> class F>(faults::Named<F> fault) {
  return SimulationFault{fault.name,
                         simulate_with<SimulatedCpu, RingDrain<Ring<F<SimulatedMemory>>>>};
};
constexpr auto plant_consumer = []<template <class> class F>(faults::Named<F> fault) {
  return SimulationFault{fault.name, simulate_with<SimulatedCpu, RingDrain<F<SimulatedMemory>>>};
};

// The scenario and the check that find a fault, unless the defaults do (`bursts`, any check).
struct Where {
  const char* name;
  const char* scenario;
  const char* lines;
  const char* message;
  bool poisoned = false;
};

constexpr const char* kOtherBytes =
    "was delivered with wrong bytes|Bad[A-Za-z]+ of [0-9]+ bytes; expected";
constexpr const char* kTooMany = "unread: a ring of 4096 holds 4088";
constexpr const char* kFlush = "a complete flush left [0-9]+ bytes that were reserved before it";
constexpr const char* kAsleep = "the consumer waits for a wakeup although [0-9]+ unread records";
constexpr const char* kAgain = "was delivered again; expected";
constexpr const char* kMoved = "data_tail moved by [0-9]+ in a drain of [0-9]+ events, which take";
constexpr const char* kTooSoon = "was delivered with the key [0-9]+, which is not lower than";
constexpr const char* kHeldBack = "held back the key [0-9]+, which is lower than its bound";
constexpr const char* kLateInVain = "is late by [0-9]+, although its writer took [0-9]+ and";
constexpr const char* kWithinDrain = "while the drain.s event [0-9]+ was still to be delivered";

constexpr Where kWhere[] = {
    {"publishes_before_writing", "bursts", "", kOtherBytes},
    {"publishes_nested", "nested_storm", "", kOtherBytes},
    {"refuses_in_an_empty_ring", "bursts", "",
     "[0-9]+ bytes were refused, with [0-9]+ of [0-9]+ unread"},
    {"counts_losses_twice", "full_ring", "", "a LOST of [0-9]+, but [0-9]+ were refused"},
    {"forgets_losses", "full_ring", "",
     "[0-9]+ bytes reserved at [0-9]+; expected [0-9]+ at [0-9]+"},
    {"space_off_by_8", "full_ring", "", kTooMany},
    {"one_record_too_many", "full_ring", "", kTooMany},
    {"ignores_tail", "full_ring", "", kTooMany},
    {"omits_last_word", "bursts", "", "sequence 0 of [0-9]+ bytes was delivered with wrong bytes"},
    {"exposes_reservations", "bursts", "payload_min 500\npayload_max 500\n",
     "that nobody wrote; expected nothing"},
    {"corrupts_ring_start", "bursts", "", kOtherBytes},
    {"detaches_ring", "bursts", "",
     "returned -28, but reserved 0 times and counted as lost 0 times"},
    {"wakes_nobody", "bursts", "", kAsleep},
    {"wakes_every_second_time", "bursts", "idle_max 0\n", kAsleep},
    {"takes_one_at_a_time", "full_ring", "break_one_in 0\nthrow_one_in 0\n",
     "a drain of an idle ring ended, and the ring is"},
    {"treats_retreat_as_damage", "before_5_2", "", "BadPositions of [0-9]+ bytes; expected"},
    {"underreads", "bursts", "", "4 bytes at offset -[0-9]+ of a ring of"},
    {"overreads", "bursts", "", "4 bytes at offset [0-9]+ of a ring of"},
    {"drops_last_event", "bursts", "",
     "though nothing was delivered|after a drain whose events end at"},
    {"leaves_last_record", "bursts", "wakeup_watermark 64\npayload_max 16\nthrow_one_in 0\n",
     "the ring reports empty, but records are still in it: 1,"},
    {"delivers_twice", "bursts", "", kAgain},
    {"swaps_two", "bursts", "break_one_in 0\nthrow_one_in 0\n",
     "was delivered after the record that follows it"},
    {"keeps_slices", "bursts", "", kAgain, true},
    {"forgets_lost", "full_ring", "", "the LOST before .* was not delivered"},
    {"sleeps_after_break", "bursts", "", kAsleep},
    {"tail_too_low", "bursts", "", kMoved},
    {"tail_too_high", "bursts", "", "after a drain whose events end at"},
    {"shortens_samples", "bursts", "", kOtherBytes},
    {"never_commits", "bursts", "", "data_tail moved by 0 in a drain of"},
    {"commits_before_reading", "bursts", "",
     "while the drain.s event 1 was still to be delivered|though nothing was delivered"},
    {"commits_early", "bursts", "", kWithinDrain},
    {"commits_each", "bursts", "", kWithinDrain},
    {"positions_of_64_bits", "crossing_4gib", "payload_min 116\npayload_max 116\n",
     "that nobody wrote; expected", true},
    {"ignores_wrap", "bursts", "", "bytes at offset [0-9]+ of a ring of"},
    {"writes_a_wrong_lost_count", "full_ring", "",
     "a LOST of [0-9]+ was delivered, but [0-9]+ were lost"},
    {"stores_after_publishing", "bursts", "", kOtherBytes},
    {"publishes_unaligned", "bursts", "", "BadPositions of [0-9]+ bytes; expected"},
    {"sets_no_poll_flag", "bursts", "", kAsleep},
    {"wakes_one_record_late", "bursts", "", kAsleep},
    {"wakes_before_publishing", "bursts", "", kAsleep},
    {"commits_unaligned", "bursts", "", kMoved},
    {"drops_second_slice", "bursts", "", kOtherBytes},
    {"redelivers_after_break", "bursts", "", kMoved},
    {"commits_all_on_break", "bursts", "", "after a drain whose events end at"},
    {"no_commit_on_throw", "bursts", "", "data_tail moved by 0 in a drain of"},
    {"commits_each_unfenced", "bursts", "", kWithinDrain},
    {"reads_after_drain", "bursts", "", kWithinDrain},
    {"ignores_break", "bursts", "", "an event was delivered after the drain.s last"},
    {"releases_early", "bursts", "", kWithinDrain},
    {"releases_undelivered", "bursts", "", "after a drain whose events end at"},
    {"trusts_record_sizes", "oversize", "", "a sample of [0-9]+ bytes, which no record can hold"},
    {"announces_refusals", "full_ring", "", ""},
    {"trusts_fifo", "merge", "", kTooSoon},
    {"merge_window_1", "merge", "interrupts 30\n", kLateInVain},
    {"reads_clock_after_head", "merge", "interrupts 0\nslack 150\ndelay_max 100\n", kHeldBack},
    {"ignores_slack", "merge", "", kTooSoon},
    {"waits_for_idle_rings", "merge", "slack 100\n", kHeldBack},
    {"releases_one_early", "merge", "", "data_tail is [0-9]+, past .*, which was not delivered"},
    {"drops_late_events", "merge_stalls", "",
     "data_tail is [0-9]+, past .*, which was not delivered"},
    {"never_marks_late", "merge_stalls", "", "is marked as in time, with the key"},
    {"sleeps_on_held_events", "merge", "", "waits for a wakeup although it holds records back"},
    {"reads_one_ring", "turns", "cpus 2\n", kAsleep},
    {"ignores_limit", "turns", "", "a round delivered more than its limit"},
    {"sleeps_at_limit", "turns", "", kAsleep},
    {"sleeps_without_recheck", "switching", "",
     "steps more although an unread record will not be announced"},
    {"abandons_offline_rings", "hotplug", "rings 1\ntimeout 0\n", kAsleep},
    {"flushes_without_a_barrier", "flushes", "", kFlush},
    {"barrier_after_the_round", "flushes", "", kFlush},
};

template <ManyFault kFault>
SimulationOutcome simulate_many_with(const SimulationPlan& plan, const Observer& observer) {
  if (plan.settings.rings == kOwnConsumers)
    return simulate(plan, observer);  // no consumer of all rings, so no fault
  return simulate_many(plan, observer, kFault);
}

template <ManyFault kFault>
SimulationFault of_many(const char* name) {
  return {name, simulate_many_with<kFault>};
}

std::vector<SimulationFault> faults_of_many() {
  using enum ManyFault;
  return {
      of_many<TrustsFifo>("trusts_fifo"),
      of_many<MergeWindow1>("merge_window_1"),
      of_many<ReadsClockAfterHead>("reads_clock_after_head"),
      of_many<IgnoresSlack>("ignores_slack"),
      of_many<WaitsForIdleRings>("waits_for_idle_rings"),
      of_many<ReleasesOneEarly>("releases_one_early"),
      of_many<DropsLateEvents>("drops_late_events"),
      of_many<NeverMarksLate>("never_marks_late"),
      of_many<SleepsOnHeldEvents>("sleeps_on_held_events"),
      of_many<ReadsOneRing>("reads_one_ring"),
      of_many<IgnoresLimit>("ignores_limit"),
      of_many<SleepsAtLimit>("sleeps_at_limit"),
      of_many<SleepsWithoutRecheck>("sleeps_without_recheck"),
      of_many<AbandonsOfflineRings>("abandons_offline_rings"),
      of_many<FlushesWithoutABarrier>("flushes_without_a_barrier"),
      of_many<BarrierAfterTheRound>("barrier_after_the_round"),
  };
}

std::vector<SimulationFault> make_planted() {
  auto all = faults::plant_all<SimulationFault>(plant_kernel, plant_memory, plant_consumer);
  for (SimulationFault& each : faults_of_many()) all.push_back(std::move(each));
  for (const Where& where : kWhere) {
    const auto fault = std::ranges::find(all, where.name, &SimulationFault::name);
    if (fault == all.end()) throw std::logic_error{where.name};
    fault->scenario = where.scenario;
    fault->lines = where.lines;
    fault->message = where.message;
    fault->poisoned = where.poisoned;
  }
  return all;
}

}  // namespace

RunSettings settings_of(const SimulationFault& fault) {
  const RunSettings scenario =
      *parse_settings(find_scenario(fault.scenario)->lines, fault.scenario);
  return *parse_settings(fault.lines, fault.name, scenario);
}

std::span<const SimulationFault> planted_faults() {
  static const std::vector<SimulationFault> all = make_planted();
  return all;
}

const SimulationFault* find_planted(std::string_view name) {
  return faults::find_planted(planted_faults(), name);
}

}  // namespace perfring::simulator
