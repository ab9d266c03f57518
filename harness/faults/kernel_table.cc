// The faults in the kernel.

#include <array>
#include <span>

#include "harness/faults/fault_catalogue.h"
#include "harness/oracle/invariant.h"

namespace perfring::faults {
namespace {

using enum oracle::Invariant;
using enum FaultKind;
using enum Reason;

// Outcomes in stress. kGarbled: the consumer reads bytes that are not the record's. kOverwritten:
// the kernel has overwritten a record before it was read; the writer may notice this first.
constexpr OneOf kGarbled{no_invention, no_loss, order, intact, once};
constexpr OneOf kOverwritten{no_invention, no_loss, order, intact, once, no_early_release};
// Outcomes in diff.
constexpr Differs kResult{"result"};
constexpr Differs kDataHead{"data_head"};
constexpr Differs kBytes{"bytes"};

constexpr std::array kFaults{
    Fault{"no_control_dependency",
          "edge A is missing: records may be stored before data_tail is read",
          Kernel,
          {InOrder, InOrder, ThisProcessor, kRace, kRace, InOrder},
          InOrder},
    Fault{"no_smp_wmb",
          "edge B is missing: data_head may be stored before the record",
          Kernel,
          {InOrder, InOrder, ThisProcessor, kRace, no_invention, InOrder},
          InOrder},
    Fault{"publishes_before_writing",
          "data_head is published before the record is written",
          Kernel,
          {intact, intact, kGarbled, kRace, no_invention, StepByStep},
          kAnyScript},
    Fault{"publishes_nested",
          "a nested writer publishes the record that the outer one is still writing",
          Kernel,
          {intact, intact, kGarbled, kRace, no_invention, StepByStep},
          kAnyScript},
    Fault{"exposes_reservations",
          "an extra store exposes each reservation in data_head",
          Kernel,
          {no_invention, no_invention, kGarbled, kRace, no_invention, StepByStep},
          kAnyScript},
    Fault{"stores_after_publishing",
          "the record is stored after data_head, as if edge B were missing",
          Kernel,
          {intact, intact, kGarbled, kRace, no_invention, StepByStep},
          "DeliveryTest.FindsAKernelThatStoresAfterPublishing"},
    Fault{"publishes_unaligned",
          "data_head is published 4 bytes too low",
          Kernel,
          {no_invention, intact, intact, RaceByChance, no_invention, kDataHead},
          "PositionTest.FindsAKernelThatPublishesUnaligned"},
    Fault{"ignores_tail",
          "data_tail is ignored: unread records are overwritten",
          Kernel,
          {no_early_release, no_early_release, kOverwritten, kRace, no_invention, kResult},
          "DeliveryTest.FindsAKernelThatIgnoresTail"},
    Fault{"space_off_by_8",
          "8 unread bytes count as free",
          Kernel,
          {no_early_release, no_early_release, kOverwritten, RaceByChance, Suffices, kResult},
          kAnyScript},
    Fault{"one_record_too_many",
          "24 unread bytes count as free",
          Kernel,
          {no_early_release, no_early_release, kOverwritten, kRace, no_invention, kResult},
          kAnyScript},
    Fault{"corrupts_ring_start",
          "each record also overwrites 4 bytes at the start of the ring",
          Kernel,
          {intact, intact, kGarbled, kRace, no_invention, kBytes},
          kAnyScript},
    Fault{"refuses_in_an_empty_ring",
          "an empty ring is taken for full",
          Kernel,
          {no_loss, no_loss, no_loss, RaceByChance, no_loss, kResult},
          "DeliveryTest.FindsAKernelThatRefusesInAnEmptyRing"},
    Fault{"counts_losses_twice",
          "each refused record is counted twice",
          Kernel,
          {no_loss, no_loss, no_loss, RaceByChance, no_loss, kBytes},
          kAnyScript},
    Fault{"forgets_losses",
          "no refused record is counted",
          Kernel,
          {no_loss, no_loss, no_loss, RaceByChance, no_loss, kDataHead},
          kAnyScript},
    Fault{"detaches_ring",
          "an event loses its ring after its first record, so refusals are not counted",
          Kernel,
          {no_loss, no_loss, no_loss, RaceByChance, no_loss, kResult},
          kAnyScript},
    Fault{"writes_a_wrong_lost_count",
          "a LOST record's count is 1 too large",
          Kernel,
          {no_loss, no_loss, no_loss, RaceByChance, once, kBytes},
          "LostAccountingTest.FindsAKernelThatWritesAWrongLostCount"},
    Fault{"omits_last_word",
          "the last word of a payload is not written",
          Kernel,
          {intact, intact, OneOf{no_invention, intact}, RaceByChance, once, kBytes},
          kAnyScript},
    Fault{"truncates_raw",
          "the raw size of an oversize record agrees with its truncated header.size",
          Kernel,
          {ShortRecords, ShortRecords, ShortRecords, ShortRecords, ShortRecords, kBytes},
          "OversizePayloadTest.FindsAKernelThatTruncatesRaw"},
    Fault{"wakes_nobody",
          "poll's flag is set, but no waiter is woken",
          Kernel,
          {NobodySleeps, awake, awake, RaceByChance, NobodySleeps, kResult},
          "WaitLoopTest.FindsAKernelThatWakesNobody"},
    Fault{"sets_no_poll_flag",
          "waiters are woken, but poll's flag is not set",
          Kernel,
          {awake, awake, FlagUnread, RaceByChance, NobodySleeps, kResult},
          kAnyScript},
    Fault{"wakes_one_record_late",
          "a record is announced when the next one is published",
          Kernel,
          {awake, awake, awake, RaceByChance, NobodySleeps, kResult},
          "WaitLoopTest.FindsAKernelThatWakesOneRecordLate"},
    Fault{"wakes_every_second_time",
          "every other wakeup is skipped, although poll's flag is set",
          Kernel,
          {NobodySleeps, awake, awake, RaceByChance, NobodySleeps, kResult},
          "WaitLoopTest.FindsAKernelThatWakesEverySecondTime"},
    Fault{"wakes_before_publishing",
          "a record is announced when it is reserved",
          Kernel,
          {NobodySleeps, awake, awake, RaceByChance, NobodySleeps, NobodySleeps},
          "WaitLoopTest.FindsAKernelThatWakesBeforePublishing"},
    Fault{"announces_refusals",
          "a refused record is announced",
          Kernel,
          {awake, EarlyWakeup, EarlyWakeup, RaceByChance, NobodySleeps, kResult},
          kAnyScript},
    Fault{"full_ring_modulo",
          "8 unread bytes count as free, and distances are modulo the ring's size",
          Kernel,
          {OwnOfTheModel, OwnOfTheModel, OwnOfTheModel, OwnOfTheModel, no_loss, OwnOfTheModel},
          OwnOfTheModel},
    Fault{"oversize",
          "a record longer than its header.size overwrites unread ones (K10)",
          Kernel,
          {KernelsDoSo, KernelsDoSo, KernelsDoSo, KernelsDoSo, kRace, KernelsDoSo},
          KernelsDoSo},
};

}  // namespace

std::span<const Fault> faults_of_a_kernel() {
  return kFaults;
}

}  // namespace perfring::faults
