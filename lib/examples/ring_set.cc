// Drains all CPUs until SIGINT or SIGTERM, and prints the counts.   usage: ring_set PIN
#include "perfring/rings/ring_set.h"

#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <variant>

#include "perfring/perf_event.h"

using namespace perfring;

static RingSet* to_stop;

int main(int argc, char** argv) {
  if (argc != 2) return std::puts("usage: ring_set PIN"), 2;
  const auto array = PerfEventArray::from_pin(argv[1]);
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  auto set = RingSet::open(*array, {.page_count = 64, .latency = std::chrono::milliseconds{1}});
  if (!set) return std::puts(set.error().explain().c_str()), 1;
  to_stop = &*set;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { to_stop->stop(); });

  std::uint64_t samples = 0, lost = 0, malformed = 0;
  const auto count = [&](std::uint32_t, const PerfEvent& event) {
    if (const auto* const each = std::get_if<Lost>(&event)) {
      lost += each->count;
    } else {
      ++(std::holds_alternative<Sample>(event) ? samples : malformed);
    }
  };
  while (set->wait() != Woken::Stop) set->drain(count);
  const auto flushed = set->flush(Flush::Complete, count);  // includes outputs under way
  if (!flushed) std::puts(flushed.error().explain().c_str());
  std::printf("%" PRIu64 " samples, %" PRIu64 " lost, %" PRIu64 " malformed\n", samples, lost,
              malformed);
}
