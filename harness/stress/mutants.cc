#include "harness/stress/mutants.h"

#include <algorithm>

#include "harness/faults/kernel_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/stress/processes.h"
#include "harness/stress/sleepers.h"
#include "harness/stress/threads.h"

namespace perfring::stress {
namespace {

using Right = kernel::HardwareCpu;

const Mutant kMutants[] = {
    // ThreadSanitizer's only: x86 keeps the order without being asked.
    {"no_control_dependency", "producer: edge A is missing", true, false,
     threads<faults::NoControlDependency<Right>>},
    {"no_smp_wmb", "producer: edge B is missing", true, false, threads<faults::NoSmpWmb<Right>>},
    {"no_acquire_fence", "consumer: edge C is missing", true, false,
     threads<Right, Consumer<faults::NoAcquireFence<DefaultMemory>>>},
    {"no_full_fence", "consumer: edge D is missing", true, false,
     threads<Right, Consumer<faults::NoFullFence<DefaultMemory>>>},
    // Of both.
    {"publishes_first", "producer: data_head is published before the record is written", true, true,
     threads<faults::PublishesFirst<Right>>},
    {"publishes_nested", "producer: a nested writer publishes what the outer one still writes",
     true, true, threads<faults::PublishesNested<Right>>},
    {"ignores_tail", "producer: what is unread is overwritten", true, true,
     threads<faults::IgnoresTail<Right>>},
    {"commits_first", "consumer: data_tail is committed before the callbacks", true, true,
     threads<Right, Consumer<faults::CommitsFirst<DefaultMemory>>>},
    {"commits_each", "consumer: data_tail is committed for each event before it is looked at", true,
     true, threads<Right, Consumer<DefaultMemory, Looks::After>>},
    // Of the invariants only.
    {"wakes_first", "producer: wakes the consumer before data_head is published", false, true,
     sleepers<faults::WakesFirst<Right>>},
    {"no_first_drain", "consumer: sleeps without a drain after it has registered", false, true,
     sleepers<Right, Waits::WithoutFirstDrain>},
    {"clears_after_drain", "consumer: takes the report back after the drain", false, true,
     sleepers<Right, Waits::ClearingAfterDrain>},
    {"sleeps_on_the_rest", "consumer: sleeps after part of a drain", false, true,
     sleepers<Right, Waits::AfterPartOfIt>},
    {"killed_publishes_first", "a killed producer that has published before it wrote", false, true,
     processes<faults::PublishesFirst<Right>>},
    {"killed_publishes_nested", "a killed producer whose nested writers publish", false, true,
     processes<faults::PublishesNested<Right>>},
};

}  // namespace

std::span<const Mutant> mutants() {
  return kMutants;
}

const Mutant* find_mutant(const std::string& name) {
  const auto found = std::ranges::find(kMutants, name, &Mutant::name);
  return found == std::end(kMutants) ? nullptr : found;
}

}  // namespace perfring::stress
