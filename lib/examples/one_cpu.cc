// Drains one CPU, and prints its events until ten samples have arrived.   usage: one_cpu PIN CPU
#include <poll.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "perfring/perfring.h"

using namespace perfring;

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: one_cpu PIN CPU"), 2;
  auto array = PerfEventArray::from_pin(argv[1]);
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  const auto cpu = static_cast<std::uint32_t>(std::atoi(argv[2]));
  auto buffer = array->open(cpu, {.page_count = 64});
  if (!buffer) return std::puts(buffer.error().explain().c_str()), 1;

  for (int samples = 0; samples < 10;) {
    buffer->for_each(Overloaded{
        [&](const Sample& sample) { std::printf("%d: %zu bytes\n", ++samples, sample.size()); },
        [](const Lost& lost) { std::printf("%" PRIu64 " lost\n", lost.count); },
        [](const Malformed& bad) { std::printf("malformed: %s\n", to_string(bad.defect)); },
    });
    pollfd ready{buffer->fd(), POLLIN, 0};
    poll(&ready, 1, /*milliseconds=*/100);
  }
}
