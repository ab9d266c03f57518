// perfring as a subject of `perfring conform -- perfring_subject {pages} {wakeup_watermark}`: opens
// a ring for each online CPU through a map, drains them after each wait, and prints what comes
// until SIGINT.
#include <linux/bpf.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "perfring/perfring.h"
using namespace perfring;

namespace {

volatile std::sig_atomic_t stopped = 0;

void print(Bytes bytes) {
  for (const std::byte byte : bytes) std::printf("%02x", static_cast<unsigned>(byte));
}

int create_map() {
  union bpf_attr attr{};
  attr.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
  attr.key_size = attr.value_size = 4;
  attr.max_entries = 64;
  return static_cast<int>(::syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

}  // namespace

int main(int argc, char** argv) {
  PerfBufferOptions options{.page_count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64};
  if (argc > 2) {
    options.wakeup_watermark = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  }
  std::signal(SIGINT, [](int) { stopped = 1; });
  const auto cpus = online_cpus();
  if (!cpus) return std::fputs(cpus.error().explain().c_str(), stderr), 1;
  auto array = PerfEventArray::from_fd(create_map());
  if (!array) return std::fputs(array.error().explain().c_str(), stderr), 1;
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<PerfEventArrayBuffer> buffers;
  for (const std::uint32_t cpu : *cpus) {
    auto buffer = array->open(cpu, options);
    if (!buffer) return std::fputs(buffer.error().explain().c_str(), stderr), 1;
    epoll_event readable{.events = EPOLLIN, .data = {}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, buffer->fd(), &readable) != 0) return 1;
    buffers.push_back(*std::move(buffer));
  }
  const Overloaded out{
      [](const Sample& sample) {
        std::printf("sample ");
        print(sample.head);
        print(sample.tail);
        std::printf("\n");
      },
      [](const Lost& lost) { std::printf("lost %" PRIu64 "\n", lost.count); },
      [](const Malformed& bad) { std::printf("error %s\n", to_string(bad.defect)); }};
  for (epoll_event ready; stopped == 0; epoll_wait(epoll, &ready, 1, /*milliseconds=*/20)) {
    for (PerfEventArrayBuffer& buffer : buffers) buffer.for_each(out);
  }
  return 0;
}
