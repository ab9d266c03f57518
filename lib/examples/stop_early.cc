// Takes at most three events at a time: other work gets its turn.   usage: stop_early PIN CPU
#include <poll.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "perfring/perfring.h"

using namespace perfring;

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: stop_early PIN CPU"), 2;
  auto array = PerfEventArray::from_pin(argv[1]);
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  auto buffer = array->open(static_cast<std::uint32_t>(std::atoi(argv[2])));
  if (!buffer) return std::puts(buffer.error().explain().c_str()), 1;

  for (int total = 0; total < 10;) {
    int taken = 0;
    // The third event stops the drain and is consumed; later events wait in the ring.
    const bool is_empty = buffer->for_each_while([&](const PerfEvent&) { return ++taken != 3; });
    total += taken;
    if (taken != 0) std::printf("took %d%s\n", taken, is_empty ? ", which is all" : "");
    if (!is_empty) continue;  // the other work's turn; no waiting, because there may be more
    pollfd ready{buffer->fd(), POLLIN, 0};
    poll(&ready, 1, /*milliseconds=*/100);
  }
}
