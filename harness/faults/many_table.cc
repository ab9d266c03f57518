// The faults of one consumer that has several rings: table.h.

#include "harness/faults/table.h"

namespace perfring::faults {
namespace {

using enum oracle::Invariant;
using enum Reason;

constexpr Fault of_many(const char* name, const char* what, oracle::Invariant found_as,
                        const char* property) {
  return {name, what, Kind::Consumer, {OneRing, found_as, OneRing, OneRing, OneRing}, property};
}

constexpr std::array kFaults{
    of_many("trusts_fifo", "a merge takes each ring to be in the order of its keys", merged,
            "ManyRingsTest.FindsAMergeThatTrustsFifo"),
    of_many("window_of_one", "a merge sorts no ring's records among themselves", late,
            "ManyRingsTest.FindsAWindowOfOne"),
    of_many("looks_before_the_clock", "a merge reads its clock after data_head", merged,
            "ManyRingsTest.FindsAMergeThatLooksBeforeItReadsTheClock"),
    of_many("forgets_the_slack", "a merge delivers whatever it has read", merged,
            "ManyRingsTest.FindsAMergeWithoutSlack"),
    of_many("waits_for_idle_rings", "a merge waits for the next record of each ring", merged,
            "ManyRingsTest.FindsAMergeThatWaitsForIdleRings"),
    of_many("releases_one_early", "data_tail passes the oldest record that was not delivered",
            tail_honest, "ManyRingsTest.FindsAMergeThatReleasesOneRecordEarly"),
    of_many("drops_the_late", "a late event is dropped", tail_honest,
            "ManyRingsTest.FindsAMergeThatDropsTheLate"),
    of_many("hides_the_late", "a late event does not say so", late,
            "ManyRingsTest.FindsAMergeThatHidesTheLate"),
    of_many("sleeps_on_the_young", "a merge that holds events back waits for a wakeup", awake,
            "ManyRingsTest.FindsAConsumerThatSleepsOnTheYoung"),
    of_many("reads_one_ring", "a consumer of all rings reads only the one that was reported", awake,
            "ManyRingsTest.FindsAConsumerThatReadsOneRing"),
    of_many("ignores_the_limit", "a round goes on past its limit", bounded,
            "ManyRingsTest.FindsARoundThatIgnoresItsLimit"),
    of_many("sleeps_on_the_limit", "a consumer waits after a round that its limit has ended", awake,
            "ManyRingsTest.FindsAConsumerThatSleepsOnTheLimit"),
    of_many("sleeps_after_the_switch",
            "wakeups are asked for again, and waited for without another look", awake,
            "ManyRingsTest.FindsAConsumerThatSleepsAfterTheSwitch"),
    of_many("forgets_the_gone", "the ring of a CPU that has gone is read no more", awake,
            "ManyRingsTest.FindsAConsumerThatForgetsTheGone"),
};

}  // namespace

std::span<const Fault> faults_of_many_rings() {
  return kFaults;
}

}  // namespace perfring::faults
