// Built with -fno-exceptions -fno-rtti (see BUILD.bazel): the whole of the library can be used.

#include <cstdio>

#include "perfring/perfring.h"

int main() {
#if defined(__cpp_exceptions) || defined(__cpp_rtti)
  std::puts("FAILED: this is built with exceptions or RTTI");
  return 1;
#else
  perfring::Ring<> ring = perfring::Ring<>::empty();
  int events = 0;
  ring.for_each([&](const perfring::PerfEvent& event) { events += event.index() == 0; });
  events = ring.fold(events, [](int n, const perfring::PerfEvent& event) {
    return std::holds_alternative<perfring::Lost>(event) ? n + 1 : n;
  });
  const auto buffer = perfring::PerfBuffer::open(0, 3);
  const bool refused = !buffer && !buffer.error().message().empty();
  return events == 0 && refused ? 0 : 1;
#endif
}
