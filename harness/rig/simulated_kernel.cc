#include "harness/rig/simulated_kernel.h"

#include <linux/perf_event.h>
#include <sys/epoll.h>

#include <cstring>
#include <stdexcept>

#include "harness/kernel/perf_event.h"

namespace perfring::rig {

using script::Action;
using script::Settings;
using script::Step;

std::uint32_t epoll_events(script::Epoll epoll) {
  switch (epoll) {
    case script::Epoll::Edge:
      return EPOLLIN | EPOLLRDNORM | EPOLLET;
    case script::Epoll::Oneshot:
      return EPOLLIN | EPOLLRDNORM | EPOLLONESHOT;
    case script::Epoll::Level:
      break;
  }
  return EPOLLIN | EPOLLRDNORM;
}

std::uint64_t tail_after(std::span<const std::byte> ring, const Settings& settings,
                         std::uint64_t head, std::uint64_t tail, std::uint64_t records) {
  if (settings.write_backward) return records != 0 ? head : tail;
  const std::uint64_t mask = settings.word == kernel::Word::k32 ? 0xffff'ffff : ~std::uint64_t{0};
  std::uint64_t unread = (head - tail) & mask;
  if (records != 0 && unread > ring.size()) return head;
  for (; records != 0 && unread != 0; --records) {
    perf_event_header header;
    std::array<std::byte, sizeof(header)> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = ring[static_cast<std::size_t>((tail + i) % ring.size())];
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > unread) return head;
    tail += header.size;
    unread -= header.size;
  }
  return tail;
}

SimulatedKernel::SimulatedKernel(const Settings& settings, const Identity& identity,
                                 unsigned page_shift)
    : ring_{settings, identity, page_shift} {
  cpu_.id = identity.cpu;
  cpu_.pid = identity.pid;
  cpu_.tid = identity.tid;
  register_events();
}

SimulatedKernel::SimulatedKernel(const Settings& settings, std::span<std::byte> memory)
    : ring_{settings, memory} {
  register_events();
}

void SimulatedKernel::register_events() {
  const std::uint32_t events = epoll_events(ring_.settings().epoll);
  for (std::size_t i = 0; i < ring_.events().size(); ++i) {
    if (epoll_.add(*ring_.events()[i], events, i) != 0) throw std::logic_error{"EPOLL_CTL_ADD"};
  }
}

Observed SimulatedKernel::run(const Step& step, std::uint64_t time) {
  cpu_.time = time;
  const std::int64_t result = act(step);
  ++steps_;
  const perf_event_mmap_page& page = ring_.page();
  Observed observed{.result = result, .head = page.data_head, .tail = page.data_tail};
  for (std::size_t i = 0; i < ring_.events().size(); ++i) {
    observed.lost[i] = ring_.events()[i]->lost_samples;
  }
  return observed;
}

std::int64_t SimulatedKernel::act(const Step& step) {
  perf_event_mmap_page& page = ring_.page();
  switch (step.action) {
    case Action::Output:
      return output(step);
    case Action::Drain:
    case Action::Throw:
      page.data_tail =
          tail_after(ring_.data(), ring_.settings(), page.data_head, page.data_tail, step.number);
      return 0;
    case Action::Tail:
      page.data_tail += step.number;
      return 0;
    default:
      return call(step);
  }
}

std::int64_t SimulatedKernel::call(const Step& step) {
  switch (step.action) {
    case Action::Poll: {
      kernel::pollfd fd{&ring_.event(step.second), EPOLLIN | EPOLLRDNORM, 0};
      kernel::do_poll({&fd, 1});
      return fd.revents;
    }
    case Action::Epoll:
      return epoll_wait();
    case Action::Rearm:
      return epoll_.modify(&ring_.event(), epoll_events(ring_.settings().epoll), 0);
    case Action::Pause:
    case Action::Resume:
      return kernel::perf_event_pause_output(ring_.event(), step.action == Action::Pause);
    case Action::Disable:
      kernel::perf_event_disable(ring_.event());
      return 0;
    case Action::Enable:
      kernel::perf_event_enable(ring_.event());
      return 0;
    default:
      throw std::logic_error{"'" + to_text(step) + "' is not a system call"};
  }
}

std::int64_t SimulatedKernel::output(const Step& step) {
  payload_.resize(static_cast<std::size_t>(step.number));
  script::fill_payload(payload_, steps_);
  return emit(cpu_, ring_.index(step.second), payload_);
}

int SimulatedKernel::emit(StepCpu& cpu, std::uint32_t index, std::span<const std::byte> payload) {
  return kernel::bpf_perf_event_output(cpu, ring_.map(), index, payload);
}

std::int64_t SimulatedKernel::epoll_wait() {
  std::array<epoll_event, 2> ready{};
  const std::size_t count = epoll_.wait(ready);
  std::int64_t result = 0;
  for (std::size_t i = 0; i < count; ++i) {
    result |= std::int64_t{ready[i].events} << (16 * ready[i].data.u64);
  }
  return result;
}

}  // namespace perfring::rig
