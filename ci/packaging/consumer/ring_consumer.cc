#include <cstdio>

#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"

int main() {
  auto ring = perfring::Ring<>::empty();
  ring.for_each([](const perfring::PerfEvent&) { std::puts("an event"); });
  std::printf("drained as C++ %ld\n", __cplusplus);
}
