// Callchains of a command and the processes that it starts, 99 a second; by the processor's cycles,
// or by a clock if it has no counters.   usage: profile COMMAND...
#include <linux/perf_event.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <variant>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/record/mappings.h"
#include "perfring/record/sample.h"
#include "perfring/sampler/sampler.h"
#include "perfring/wait/waiter.h"

using namespace perfring;

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: profile COMMAND..."), 2;
  const auto clock = event::software(PERF_COUNT_SW_CPU_CLOCK).callchain().frequency(99);
  const auto cycles = event::hardware(PERF_COUNT_HW_CPU_CYCLES).callchain().frequency(99);
  auto sampler = event::Sampler::open(
      {.events = {cycles.or_else(clock), event::changes({.execs = true, .maps = true})},
       .target = event::child({argv + 1, argv + argc})});
  if (!sampler) return std::puts(sampler.error().explain().c_str()), 1;
  for (const std::string& note : sampler->notes()) std::fprintf(stderr, "%s\n", note.c_str());

  std::uint64_t samples = 0, frames = 0, maps = 0;
  const auto add = [&](const event::Delivered& each) {
    if (const auto* const sample = std::get_if<record::Sample>(&each.record)) {
      ++samples;
      for ([[maybe_unused]] const auto frame : sample->callchain()->frames()) ++frames;
    }
    maps += std::holds_alternative<record::Mmap2>(each.record);
  };
  while (!sampler->child_status()) {
    sampler->wait(Waiter::Clock::now() + std::chrono::milliseconds{50});
    sampler->for_each(add);
  }
  sampler->flush(add);
  std::printf("%" PRIu64 " samples, %" PRIu64 " frames, %" PRIu64 " maps, %" PRIu64 " lost\n",
              samples, frames, maps, sampler->lost());
}
