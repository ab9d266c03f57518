// Counts events of the processor, of its caches and a raw one as a group, each with a fallback; and
// an event of a PMU of the whole machine, by its sysfs name.   usage: counters
#include <linux/perf_event.h>

#include <cinttypes>
#include <cstdio>
#include <string>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/sampler/group.h"

using namespace perfring;

int main() {
  const event::Event clock = event::software(PERF_COUNT_SW_TASK_CLOCK);
  auto group = event::Group::open(
      {.events = {event::hardware(PERF_COUNT_HW_INSTRUCTIONS).or_else(clock),
                  event::cache(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ,
                               PERF_COUNT_HW_CACHE_RESULT_MISS)
                      .or_else(event::software(PERF_COUNT_SW_PAGE_FAULTS)),
                  event::raw(0x00c0).or_else(clock)},
       .target = event::this_thread()});
  if (!group) return std::puts(group.error().explain().c_str()), 1;
  for (const std::string& note : group->notes()) std::puts(note.c_str());
  static volatile char memory[1 << 20];
  for (std::size_t at = 0; at < sizeof(memory); ++at) memory[at] = 1;
  const auto counts = group->read();
  if (!counts) return std::puts(counts.error().explain().c_str()), 1;
  for (const event::Count& each : *counts) {
    if (!each.ran()) std::puts("never ran: the group does not fit the PMU");
    if (each.ran()) std::printf("%" PRIu64 "\n", *each.scaled());
  }
  const auto ticks = event::Counter::open(event::pmu("msr/tsc/"));
  if (!ticks) return std::puts(ticks.error().explain().c_str()), 0;
  std::printf("ticks of all CPUs: %" PRIu64 "\n", ticks->read().value_or(event::Count{}).value);
}
