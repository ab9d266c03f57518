// The writes to a variable, by a breakpoint, in a poll(2) loop of your own that watches the
// sampler's fd().
// usage: breakpoint
#include <poll.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/record/sample.h"
#include "perfring/sampler/sampler.h"
#include "perfring/wait/waiter.h"

using namespace perfring;

static volatile int watched;

int main() {
  auto sampler =
      event::Sampler::open({.events = {event::breakpoint(reinterpret_cast<std::uintptr_t>(&watched),
                                                         event::Access::Write, sizeof(watched))},
                            .target = event::this_thread()});
  if (!sampler) return std::puts(sampler.error().explain().c_str()), 1;
  int count = 0;
  for (int i = 0; count < 10 && i < 20; ++i) {
    if (i < 10) watched = i;
    pollfd ready{sampler->fd(), POLLIN, 0};
    poll(&ready, 1, /*milliseconds=*/i < 10 ? 0 : 100);
    sampler->wait(Waiter::Clock::time_point::min());
    sampler->for_each([&](const event::Delivered& each) {
      const auto& sample = std::get<record::Sample>(each.record);
      std::printf("write %d by %#" PRIx64 "\n", ++count, *sample.ip());
    });
  }
  if (count == 10) return 0;
  std::printf("%d of 10 writes were seen: not every hypervisor has breakpoints\n", count);
  return 1;
}
