// Opens a ring apart from the map, enters it once everything is ready, and removes it before the
// last drain, so that nothing is left in it: aya's later API.   usage: set_unset PIN CPU
#include <poll.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "perfring/perfring.h"

using namespace perfring;

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: set_unset PIN CPU"), 2;
  auto array = PerfEventArray::from_pin(argv[1]);  // outlives the entry: the buffer holds no map
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  const auto cpu = static_cast<std::uint32_t>(std::atoi(argv[2]));
  auto buffer = PerfEventArrayBuffer::open(cpu, 64);
  if (!buffer) return std::puts(buffer.error().explain().c_str()), 1;
  const auto set = array->set(cpu, buffer->fd());
  if (!set) return std::puts(set.error().explain().c_str()), 1;

  int samples = 0;
  const auto count = [&](const PerfEvent& event) {
    samples += std::holds_alternative<Sample>(event);
  };
  while (samples < 10) {
    buffer->for_each(count);
    pollfd ready{buffer->fd(), POLLIN, 0};
    poll(&ready, 1, /*milliseconds=*/100);
  }
  const auto unset = array->unset(cpu);
  if (!unset) return std::puts(unset.error().explain().c_str()), 1;
  buffer->for_each(count);
  std::printf("%d samples\n", samples);
}
