// A tracepoint on all CPUs in the order of time, with its fields by name and type.
// usage: tracepoint SECONDS
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "perfring/event/event.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/record/sample.h"
#include "perfring/sampler/sampler.h"
#include "perfring/wait/waiter.h"

using namespace perfring;

int main(int argc, char** argv) {
  if (argc != 2) return std::puts("usage: tracepoint SECONDS"), 2;
  const auto format = event::TracepointFormat::of("sched:sched_process_exec");
  if (!format) return std::puts(format.error().says.c_str()), 1;
  const auto filename = format->text("filename");
  const auto pid = format->field<std::int32_t>("pid");
  if (!filename || !pid) return std::puts("this kernel's tracepoint has other fields"), 1;

  auto sampler = event::Sampler::open({.events = {event::tracepoint("sched:sched_process_exec")}});
  if (!sampler) return std::puts(sampler.error().explain().c_str()), 1;
  const auto end = Waiter::Clock::now() + std::chrono::seconds{std::atoi(argv[1])};
  while (const auto each = sampler->next(end)) {
    const auto* const sample = std::get_if<record::Sample>(&each->record);
    if (sample == nullptr) continue;  // a LOST
    const auto name = filename->of(*sample->raw()).value_or("");
    std::printf("CPU %" PRIu32 ": %" PRId32 " runs %.*s\n", *sample->cpu(),
                pid->of(*sample->raw()).value_or(0), static_cast<int>(name.size()), name.data());
    std::fflush(stdout);
  }
}
