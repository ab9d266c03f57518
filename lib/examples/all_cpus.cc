// Drains all CPUs for some seconds, and prints the counts.   usage: all_cpus PIN SECONDS
#include <sys/epoll.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

#include "perfring/perfring.h"
using namespace perfring;

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: all_cpus PIN SECONDS"), 2;
  auto array = PerfEventArray::from_pin(argv[1]);
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  const auto cpus = online_cpus();
  if (!cpus) return std::puts(cpus.error().explain().c_str()), 1;
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return std::perror("epoll_create1"), 1;
  std::vector<PerfEventArrayBuffer> buffers;
  for (const std::uint32_t cpu : *cpus) {
    auto buffer = array->open(cpu, {.page_count = 64});
    if (!buffer) return std::puts(buffer.error().explain().c_str()), 1;
    epoll_event readable{.events = EPOLLIN, .data = {}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, buffer->fd(), &readable) != 0)
      return std::perror("epoll_ctl"), 1;
    buffers.push_back(*std::move(buffer));
  }
  std::uint64_t samples = 0, lost = 0, malformed = 0;
  const Overloaded count{[&](const Sample&) { ++samples; }, [&](const Lost& l) { lost += l.count; },
                         [&](const Malformed&) { ++malformed; }};
  const std::time_t end = std::time(nullptr) + std::atoi(argv[2]);
  for (epoll_event ready; std::time(nullptr) < end; epoll_wait(epoll, &ready, 1, /*ms=*/100)) {
    for (PerfEventArrayBuffer& buffer : buffers) buffer.for_each(count);
  }
  std::printf("%" PRIu64 " samples, %" PRIu64 " lost, %" PRIu64 " malformed\n", samples, lost,
              malformed);
}
