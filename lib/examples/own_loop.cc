// All CPUs, in the order of their keys, in a loop that also watches other descriptors: here stdin,
// until its end.   usage: own_loop PIN
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"

using namespace perfring;

int main(int argc, char** argv) {
  if (argc != 2) return std::puts("usage: own_loop PIN"), 2;
  const auto array = PerfEventArray::from_pin(argv[1]);
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  auto set = RingSet::open(*array);
  if (!set) return std::puts(set.error().explain().c_str()), 1;
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return std::perror("epoll_create1"), 1;
  for (const int fd : {set->fd(), STDIN_FILENO}) {
    epoll_event readable{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &readable) != 0) return std::perror("epoll_ctl"), 1;
  }
  const auto print = [](std::uint32_t cpu, const Ordered& event) {
    std::printf("CPU %" PRIu32 ", key %" PRIu64 "%s\n", cpu, event.key, event.late ? " late" : "");
  };
  for (char bytes[256];;) {
    const auto now = RingSet::Clock::now();
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(std::max(set->next_deadline(), now) - now);
    epoll_event ready{};
    const int reported = epoll_wait(epoll, &ready, 1, static_cast<int>(wait.count()));
    set->poll();  // read all rings, whatever was reported
    set->merge(KeyAt{0}, {}, print);
    if (reported == 1 && ready.data.fd == STDIN_FILENO && read(0, bytes, 256) <= 0) break;
  }
  return set->flush(Flush::Visible, KeyAt{0}, print).has_value() ? 0 : 1;
}
