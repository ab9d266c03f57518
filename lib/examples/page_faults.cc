// Page faults of this thread, with their addresses; and its context switches.   usage: page_faults
#include <linux/perf_event.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/sampler/sampler.h"
#include "perfring/wait/waiter.h"

using namespace perfring;

int main() {
  auto sampler = event::Sampler::open(
      {.events = {event::software(PERF_COUNT_SW_PAGE_FAULTS), event::changes({.switches = true})},
       .target = event::this_thread()});
  if (!sampler) return std::puts(sampler.error().explain().c_str()), 1;
  for (const std::string& note : sampler->notes()) std::puts(note.c_str());

  static volatile char memory[1 << 20];
  for (std::size_t at = 0; at < sizeof(memory); at += 4096) memory[at] = 1;
  sampler->wait(Waiter::Clock::now());

  sampler->flush([](const event::Delivered& each) {
    if (const auto* const sample = std::get_if<record::Sample>(&each.record)) {
      std::printf("fault at %#" PRIx64 " by %#" PRIx64 "\n", *sample->addr(), *sample->ip());
    } else if (const auto* const change = std::get_if<record::Switch>(&each.record)) {
      std::printf("switched %s\n", change->is_out() ? "out" : "in");
    }
  });
}
