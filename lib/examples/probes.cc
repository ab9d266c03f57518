// A kernel function and its return, by kprobes; a library's function by a uprobe and a uretprobe.
// usage: probes FUNCTION PATH SYMBOL COMMAND...
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <variant>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/record/sample.h"
#include "perfring/sampler/sampler.h"
#include "perfring/wait/waiter.h"

using namespace perfring;

int main(int argc, char** argv) {
  if (argc < 5) return std::puts("usage: probes FUNCTION PATH SYMBOL COMMAND..."), 2;
  const event::Event nothing = event::changes({.execs = true});  // if there are no kprobes
  auto sampler = event::Sampler::open(
      {.events = {event::kprobe(argv[1]).or_else(nothing),
                  event::kretprobe(argv[1]).or_else(nothing), event::uprobe(argv[2], argv[3]),
                  event::uretprobe(argv[2], argv[3]).or_else(nothing)},
       .target = event::child({argv + 4, argv + argc})});
  if (!sampler) return std::puts(sampler.error().explain().c_str()), 1;
  for (const std::string& note : sampler->notes()) std::puts(note.c_str());

  std::uint64_t hits[4] = {};
  const auto count = [&](const event::Delivered& each) {
    if (each.event < 4 && std::holds_alternative<record::Sample>(each.record)) ++hits[each.event];
  };
  while (!sampler->child_status()) {
    sampler->wait(Waiter::Clock::now() + std::chrono::milliseconds{10});
    sampler->for_each(count);
  }
  sampler->flush(count);
  std::printf("%s: %" PRIu64 " calls, %" PRIu64 " returns; %s: %" PRIu64 " calls, %" PRIu64
              " returns\n",
              argv[1], hits[0], hits[1], argv[3], hits[2], hits[3]);
}
