#include "harness/faults/fault_catalogue.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace perfring::faults {

namespace {

using oracle::Invariant;

constexpr std::array kHarnessList{Harness::Scripts, Harness::Simulator,
                                  Harness::Stress,  Harness::ThreadSanitizer,
                                  Harness::Model,   Harness::Differential};
static_assert(kHarnessList.size() == kHarnesses);

struct Explained {
  Reason reason;
  const char* name;
  const char* explanation;
};
constexpr std::array kReasons{
    Explained{Reason::InOrder, "in order",
              "one thread plays kernel and consumer, and observes all stores at once and in "
              "program order"},
    Explained{Reason::ThisProcessor, "this processor",
              "x86 and the compiler keep this order anyway; ThreadSanitizer and the model checker "
              "see that the fence is missing"},
    Explained{Reason::Suffices, "suffices",
              "no invariant of the model checker depends on it: the model checker proves that all "
              "hold without it"},
    Explained{
        Reason::NobodySleeps, "nobody sleeps",
        "no consumer sleeps until a wakeup; a poll, if any, checks the flag, which is correct"},
    Explained{Reason::FlagUnread, "flag unread",
              "consumers sleep on an eventfd, and never read the flag that poll clears"},
    Explained{Reason::FenceForFence, "fence for fence",
              "one fence replaces another, which no other harness distinguishes: planted in the "
              "model checker only"},
    Explained{Reason::OwnOfTheModel, "model's own",
              "it changes the model checker's word-by-word protocol, or a part of Drain that no "
              "Memory reaches, or knows the ring's size: planted there only"},
    Explained{
        Reason::KernelsDoSo, "kernels do so",
        "real kernels do it, so the simulated kernel does it as well, and the oracle expects it: "
        "planted in the model checker only"},
    Explained{Reason::Unwatched, "unwatched",
              "this harness does not watch reads, and reading too much changes nothing"},
    Explained{
        Reason::AroundMemory, "around memory",
        "it reads data_head without the Memory by which this harness counts reads: not planted"},
    Explained{
        Reason::WaitLoop, "wait loop",
        "this harness has no wait loop, or its other rings hide the fault: not planted; a property "
        "finds it"},
    Explained{Reason::ShortRecords, "oversize",
              "payloads are too short, or overwrite the ring, which the oracle does not judge; a "
              "property finds it"},
    Explained{Reason::HostileRings, "hostile rings",
              "no kernel writes such a size; a property and //fuzz:planted_fault use rings of "
              "arbitrary bytes, and find it"},
    Explained{Reason::RaceByChance, "by chance",
              "not a fault of order: a race is reported only if a run hits a window of a few "
              "instructions"},
    Explained{Reason::EarlyWakeup, "early wakeup", "a consumer may be woken without a record"},
    Explained{
        Reason::OneRing, "one ring",
        "this harness has a consumer for each ring: not planted; the simulator has one for all"},
    Explained{Reason::NoKernel, "no kernel",
              "rings of arbitrary bytes have no kernel: not planted; `kernel_script` runs scripts"},
    Explained{Reason::NoConsumer, "no consumer",
              "a step moves data_tail by the records' headers, without lib: not planted"},
    Explained{Reason::StepByStep, "step by step",
              "the kernels are compared after each step, when the fault's effect is over, because "
              "no step interrupts another"},
    Explained{Reason::Quiet, "quiet", "the producer does not write while the consumer reads"},
    Explained{Reason::WholeDrains, "whole drains", "every drain runs to its end"},
    Explained{Reason::Since52, "since 5.2",
              "its kernel is 5.2 or later, whose data_head never moves back"},
};

// The outcomes in the fuzz target hostile_ring, in the first seed (in the order of the seeds'
// names) that shows the fault.
struct ByFuzzing {
  std::string_view name;
  Expected expected;
};
constexpr std::array kByFuzzing{
    ByFuzzing{"commits_before_reading", Invariant::tail_honest},
    ByFuzzing{"tail_too_low", Invariant::tail_honest},
    ByFuzzing{"tail_too_high", Invariant::tail_honest},
    ByFuzzing{"commits_unaligned", Invariant::tail_honest},
    ByFuzzing{"never_commits", Invariant::tail_honest},
    ByFuzzing{"treats_retreat_as_damage", Invariant::no_invention},
    ByFuzzing{"redelivers_after_break", Invariant::tail_honest},
    ByFuzzing{"no_commit_on_throw", Invariant::tail_honest},
    ByFuzzing{"commits_early", Invariant::tail_honest},
    ByFuzzing{"commits_each", Invariant::tail_honest},
    ByFuzzing{"commits_each_unfenced", Invariant::tail_honest},
    ByFuzzing{"reads_after_drain", Invariant::tail_honest},
    ByFuzzing{"drops_last_event", Invariant::tail_honest},
    ByFuzzing{"delivers_twice", Invariant::intact},
    ByFuzzing{"releases_early", Invariant::tail_honest},
    ByFuzzing{"releases_undelivered", Invariant::tail_honest},
    ByFuzzing{"underreads", Invariant::in_ring},
    ByFuzzing{"overreads", Invariant::in_ring},
    ByFuzzing{"shortens_samples", Invariant::intact},
    ByFuzzing{"ignores_top_size_bit", Invariant::intact},
    ByFuzzing{"drops_second_slice", Invariant::intact},
    ByFuzzing{"forgets_lost", Invariant::intact},
    ByFuzzing{"swaps_two", Invariant::intact},
    ByFuzzing{"keeps_slices", Invariant::intact},
    ByFuzzing{"ignores_break", Invariant::once},
    ByFuzzing{"takes_one_at_a_time", Invariant::no_loss},
    ByFuzzing{"head_read_again", Invariant::no_invention},
    ByFuzzing{"commits_all_on_break", Invariant::tail_honest},
    ByFuzzing{"sleeps_after_break", Reason::NobodySleeps},
    ByFuzzing{"trusts_record_sizes", Reason::AroundMemory},
    ByFuzzing{"positions_of_64_bits", Reason::AroundMemory},
    ByFuzzing{"leaves_last_record", Reason::AroundMemory},
    ByFuzzing{"ignores_wrap", Reason::AroundMemory},
};

// Returns text: "no_invention, order or intact".
std::string joined(const OneOf& some) {
  std::vector<std::string> names;
  for (const Invariant each : oracle::invariants()) {
    if (some.has(each)) names.emplace_back(to_string(each));
  }
  std::string text = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) {
    text += (i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

const Explained& explained(Reason reason) {
  return *std::ranges::find(kReasons, reason, &Explained::reason);
}

}  // namespace

std::span<const Fault> catalogue() {
  static const auto all = [] {
    const auto kernel = faults_of_a_kernel();
    std::vector<Fault> every{kernel.begin(), kernel.end()};
    for (const auto& others : {faults_of_a_consumer(), faults_of_many_rings()}) {
      every.insert(every.end(), others.begin(), others.end());
    }
    return every;
  }();
  return all;
}

const Fault* find_fault(std::string_view name) {
  const auto found =
      std::ranges::find_if(catalogue(), [&](const Fault& fault) { return fault.name == name; });
  return found == catalogue().end() ? nullptr : &*found;
}

const char* what(std::string_view name) {
  const Fault* const fault = find_fault(name);
  if (fault == nullptr) throw std::logic_error{"not in the catalogue: " + std::string{name}};
  return fault->what;
}

const char* to_string(Reason reason) {
  return explained(reason).name;
}

const char* explanation(Reason reason) {
  return explained(reason).explanation;
}

std::span<const Reason> reasons() {
  static const auto all = [] {
    std::array<Reason, kReasons.size()> each{};
    std::ranges::transform(kReasons, each.begin(), &Explained::reason);
    return each;
  }();
  return all;
}

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::Kernel:
      return "kernel";
    case FaultKind::Memory:
      return "memory";
    case FaultKind::Consumer:
      return "consumer";
    case FaultKind::Variant:
      return "variant";
  }
  return "unknown kind";
}

const char* to_string(Harness harness) {
  switch (harness) {
    case Harness::Scripts:
      return "scripts";
    case Harness::Simulator:
      return "sim";
    case Harness::Stress:
      return "stress";
    case Harness::ThreadSanitizer:
      return "tsan";
    case Harness::Model:
      return "check";
    case Harness::Differential:
      return "diff";
  }
  return "unknown harness";
}

std::span<const Harness> harnesses() {
  return kHarnessList;
}

bool is_found(const Expected& expected) {
  return !std::holds_alternative<Reason>(expected) && !std::holds_alternative<Holds>(expected);
}

bool is_not_planted(Reason reason) {
  switch (reason) {
    case Reason::FenceForFence:
    case Reason::OwnOfTheModel:
    case Reason::KernelsDoSo:
    case Reason::AroundMemory:
    case Reason::WaitLoop:
    case Reason::OneRing:
    case Reason::NoKernel:
    case Reason::NoConsumer:
      return true;
    default:
      return false;
  }
}

std::string in_words(const Expected& expected) {
  if (const auto* const invariant = std::get_if<Invariant>(&expected)) return to_string(*invariant);
  if (const auto* const some = std::get_if<OneOf>(&expected)) return joined(*some);
  if (std::holds_alternative<DataRace>(expected)) return "data race";
  if (const auto* const differs = std::get_if<Differs>(&expected)) return differs->in;
  if (std::holds_alternative<Holds>(expected)) return "holds";
  return std::string{"undetectable: "} + to_string(std::get<Reason>(expected));
}

Expected by_fuzzing(const Fault& fault) {
  const auto row = std::ranges::find(kByFuzzing, fault.name, &ByFuzzing::name);
  if (row != kByFuzzing.end()) return row->expected;
  return fault.kind == FaultKind::Kernel ? Reason::NoKernel : fault.in(Harness::Scripts);
}

std::string property_of(const Fault& fault) {
  if (const auto* const reason = std::get_if<Reason>(&fault.property)) {
    return std::string{"("} + to_string(*reason) + ")";
  }
  const std::string_view test = std::get<const char*>(fault.property);
  return std::string{test} + (test == kAnyScript ? std::string{"/"} + fault.name : "");
}

namespace {

using enum oracle::Invariant;
using enum Reason;

// Returns a fault of one consumer that has several rings.
constexpr Fault of_many(const char* name, const char* what, oracle::Invariant found_as,
                        const char* property) {
  return {name,
          what,
          FaultKind::Consumer,
          {OneRing, found_as, OneRing, OneRing, OneRing, NoConsumer},
          property};
}

constexpr std::array kFaults{
    of_many("trusts_fifo", "a merge assumes that each ring is in the order of its keys", merged,
            "ManyRingsTest.FindsAMergeThatTrustsFifo"),
    of_many("merge_window_1", "a merge does not sort the records within a ring", late,
            "ManyRingsTest.FindsAMergeWithAWindowOfOne"),
    of_many("reads_clock_after_head", "a merge reads its clock after data_head", merged,
            "ManyRingsTest.FindsAMergeThatReadsItsClockAfterTheHead"),
    of_many("ignores_slack", "a merge delivers everything that it has read, without slack", merged,
            "ManyRingsTest.FindsAMergeWithoutSlack"),
    of_many("waits_for_idle_rings", "a merge waits for the next record of each ring", merged,
            "ManyRingsTest.FindsAMergeThatWaitsForIdleRings"),
    of_many("releases_one_early", "data_tail passes the oldest record that was not delivered",
            tail_honest, "ManyRingsTest.FindsAMergeThatReleasesOneRecordEarly"),
    of_many("drops_late_events", "a late event is dropped", tail_honest,
            "ManyRingsTest.FindsAMergeThatDropsLateEvents"),
    of_many("never_marks_late", "a late event is not marked as late", late,
            "ManyRingsTest.FindsAMergeThatNeverMarksLateEvents"),
    of_many("sleeps_on_held_events", "a merge that holds events back waits for a wakeup", awake,
            "ManyRingsTest.FindsAConsumerThatSleepsOnHeldEvents"),
    of_many("reads_one_ring", "a consumer of all rings reads only the one that was reported", awake,
            "ManyRingsTest.FindsAConsumerThatReadsOneRing"),
    of_many("ignores_limit", "a round continues past its limit", bounded,
            "ManyRingsTest.FindsARoundThatIgnoresItsLimit"),
    of_many("sleeps_at_limit", "a consumer waits after a round that ended at its limit", awake,
            "ManyRingsTest.FindsAConsumerThatSleepsAtTheLimit"),
    of_many("sleeps_without_recheck",
            "wakeups are enabled again, and the consumer waits without checking the rings again",
            awake, "ManyRingsTest.FindsAConsumerThatSleepsWithoutARecheck"),
    of_many("abandons_offline_rings", "the ring of a CPU that went offline is not read again",
            awake, "ManyRingsTest.FindsAConsumerThatAbandonsOfflineRings"),
    of_many("flushes_without_a_barrier", "a complete flush does not wait for writers in progress",
            no_loss, "ManyRingsTest.FindsAFlushWithoutABarrier"),
    of_many("barrier_after_the_round", "a complete flush waits for the writers after its round",
            no_loss, "ManyRingsTest.FindsABarrierAfterTheRound"),
};

}  // namespace

std::span<const Fault> faults_of_many_rings() {
  return kFaults;
}

}  // namespace perfring::faults
