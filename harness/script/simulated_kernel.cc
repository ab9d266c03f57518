#include "harness/script/simulated_kernel.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "harness/kernel/bpf_output.h"

namespace perfring::script {
namespace {

kernel::perf_file open_event(const Settings& settings, const Identity& identity,
                             std::size_t index) {
  auto event = kernel::perf_event_open(attr_of(settings), identity.cpu, settings.word);
  if (!event) throw std::invalid_argument("perf_event_open");
  (*event)->id = identity.ids[index];
  return *std::move(event);
}

std::vector<kernel::perf_file> open_events(const Settings& settings, const Identity& identity) {
  std::vector<kernel::perf_file> events;
  for (std::size_t i = 0; i < settings.events; ++i) {
    events.push_back(open_event(settings, identity, i));
  }
  return events;
}

kernel::perf_mapping map_ring(const kernel::perf_file& event, const kernel::RingMemory& memory,
                              const Settings& settings, unsigned page_shift) {
  auto mapping = kernel::perf_mmap(event, memory.bytes(), !settings.overwrite, page_shift);
  if (!mapping) throw std::invalid_argument("mmap");
  return *std::move(mapping);
}

}  // namespace

perf_event_attr attr_of(const Settings& settings) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_period = 1;
  attr.sample_type = settings.sample_type;
  attr.sample_id_all = settings.sample_id_all ? 1 : 0;
  attr.watermark = settings.watermark ? 1 : 0;
  attr.wakeup_events = static_cast<std::uint32_t>(settings.wakeup);  // one union with watermark's
  attr.write_backward = settings.write_backward ? 1 : 0;
  attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

std::uint32_t epoll_events(Epoll epoll) {
  switch (epoll) {
    case Epoll::Edge:
      return EPOLLIN | EPOLLRDNORM | EPOLLET;
    case Epoll::Oneshot:
      return EPOLLIN | EPOLLRDNORM | EPOLLONESHOT;
    case Epoll::Level:
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
    : settings_{settings},
      memory_{static_cast<std::size_t>(settings.pages), std::size_t{1} << page_shift},
      events_{open_events(settings, identity)},
      mapping_{map_ring(events_[0], memory_, settings, page_shift)} {
  cpu_.id = identity.cpu;
  cpu_.pid = identity.pid;
  cpu_.tid = identity.tid;
  if (settings.start != 0) kernel::start_at(mapping_.rb(), settings.start);
  for (std::uint32_t i = 0; i < events_.size(); ++i) {
    kernel::perf_event& event = *events_[i];
    if (i != 0 && kernel::perf_event_set_output(event, events_[0].get()) != 0) {
      throw std::invalid_argument("PERF_EVENT_IOC_SET_OUTPUT");
    }
    if (map_file_.update_elem(i, events_[i]) != 0 ||
        epoll_.add(event, epoll_events(settings.epoll), i) != 0) {
      throw std::invalid_argument("an event's registration");
    }
  }
}

std::span<const std::byte> SimulatedKernel::ring() const {
  return {mapping_.rb().data_pages, static_cast<std::size_t>(mapping_.rb().data_size())};
}

Observed SimulatedKernel::run(const Step& step, std::uint64_t time) {
  cpu_.time = time;
  const std::int64_t result = act(step);
  ++steps_;
  Observed observed{.result = result, .head = user_page().data_head, .tail = user_page().data_tail};
  for (std::size_t i = 0; i < events_.size(); ++i) observed.lost[i] = events_[i]->lost_samples;
  return observed;
}

std::int64_t SimulatedKernel::act(const Step& step) {
  perf_event_mmap_page& page = *mapping_.rb().user_page;
  switch (step.action) {
    case Action::Output:
      return output(step);
    case Action::Drain:
    case Action::Throw:
      page.data_tail = tail_after(ring(), settings_, page.data_head, page.data_tail, step.number);
      return 0;
    case Action::Tail:
      page.data_tail += step.number;
      return 0;
    case Action::Poll: {
      kernel::pollfd fd{&event(step.second), EPOLLIN | EPOLLRDNORM, 0};
      kernel::do_poll({&fd, 1});
      return fd.revents;
    }
    case Action::Epoll:
      return epoll_wait();
    case Action::Rearm:
      return epoll_.modify(&event(false), epoll_events(settings_.epoll), 0);
    case Action::Pause:
    case Action::Resume:
      return kernel::perf_event_pause_output(event(false), step.action == Action::Pause);
    case Action::Disable:
      kernel::perf_event_disable(event(false));
      return 0;
    case Action::Enable:
      kernel::perf_event_enable(event(false));
      return 0;
  }
  throw std::invalid_argument("an action that is none");
}

std::int64_t SimulatedKernel::output(const Step& step) {
  payload_.resize(static_cast<std::size_t>(step.number));
  fill_payload(payload_, steps_);
  return kernel::bpf_perf_event_output(cpu_, *map_, step.second ? 1 : 0, payload_);
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

}  // namespace perfring::script
