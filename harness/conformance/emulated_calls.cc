#include "harness/conformance/emulated_calls.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace perfring::conformance {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kRingMax = 64U << 20;

std::size_t size_of(std::uint64_t asked, std::size_t most) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(asked, most));
}

pid_t thread_of(const seccomp_notif& call) {
  return static_cast<pid_t>(call.pid);
}

ino_t inode_of(int fd) {
  struct stat of{};
  return fd >= 0 && ::fstat(fd, &of) == 0 ? of.st_ino : 0;
}

}  // namespace

Opened::Opened()
    : file{::memfd_create("perf_event", MFD_CLOEXEC)},
      wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {}

Opened::~Opened() {
  waiter.reset();
  ring.reset();
  if (!memory.empty()) ::munmap(memory.data(), memory.size());
}

void Opened::make_ring(const script::Settings& settings) {
  ring = std::make_unique<rig::SimulatedRing>(settings, memory);
  waiter = std::make_unique<kernel::EventfdWaiter>(ring->file(), wake.get());
}

bool Opened::take_flag() const {
  std::uint64_t count = 0;
  return ::read(wake.get(), &count, sizeof(count)) == sizeof(count);
}

EmulatedCalls::EmulatedCalls(TracedProcess& process, Playing& playing)
    : process_{process}, playing_{playing}, map_{::memfd_create("bpf_map", MFD_CLOEXEC)} {}

Opened* EmulatedCalls::event_of(pid_t thread, int fd) {
  const os::Fd copy = process_.copy_of(thread, fd);
  const ino_t inode = inode_of(copy.get());
  for (const auto& event : events_) {
    if (inode != 0 && inode_of(event->file.get()) == inode) return event.get();
  }
  return nullptr;
}

bool EmulatedCalls::is_map(pid_t thread, int fd) {
  const os::Fd copy = process_.copy_of(thread, fd);
  return copy.get() >= 0 && inode_of(copy.get()) == inode_of(map_.get());
}

CallAnswer EmulatedCalls::answer(const seccomp_notif& call) {
  switch (emulated(call.data)) {
    case Emulated::PerfEventOpen:
      return open(call);
    case Emulated::Bpf:
      return bpf(call);
    case Emulated::Ioctl:
      return control(call);
    case Emulated::EpollCtl:
      return add_to_epoll(call);
    case Emulated::Poll:
      return poll(call, false);
    case Emulated::Ppoll:
    case Emulated::PpollTime64:
      return poll(call, true);
    case Emulated::EpollWait:  // the program sleeps and wakes by itself
      if (std::ranges::find(epolls_, static_cast<int>(call.data.args[0])) != epolls_.end()) {
        playing_.on_wait();
      }
      return {.by_kernel = true};
    case Emulated::None:
      break;
  }
  return {.by_kernel = true};
}

CallAnswer EmulatedCalls::open(const seccomp_notif& call) {
  perf_event_attr attr{};
  std::uint32_t size = 0;
  const std::uint64_t address = call.data.args[0];
  const pid_t thread = thread_of(call);
  if (!process_.read(thread, address + offsetof(perf_event_attr, size), &size, sizeof(size))) {
    return {.value = -EFAULT};
  }
  if (size == 0) size = PERF_ATTR_SIZE_VER0;
  const std::size_t known = std::min<std::size_t>(size, sizeof(attr));
  if (!process_.read(thread, address, &attr, known)) return {.value = -EFAULT};
  if (attr.type != PERF_TYPE_SOFTWARE || attr.config != PERF_COUNT_SW_BPF_OUTPUT) {
    return {.by_kernel = true};
  }
  events_.push_back(std::make_unique<Opened>());
  events_.back()->attr = attr;
  events_.back()->of_32_bits = call.data.arch == AUDIT_ARCH_I386;
  return {.fd = events_.back()->file.get()};
}

CallAnswer EmulatedCalls::bpf(const seccomp_notif& call) {
  union bpf_attr attr{};
  const std::size_t size = size_of(call.data.args[2], sizeof(attr));
  const pid_t thread = thread_of(call);
  if (!process_.read(thread, call.data.args[1], &attr, size)) return {.value = -EFAULT};
  switch (call.data.args[0]) {
    case BPF_MAP_CREATE:
      if (attr.map_type != BPF_MAP_TYPE_PERF_EVENT_ARRAY) return {.by_kernel = true};
      return {.fd = map_.get()};
    case BPF_MAP_GET_FD_BY_ID:
      return {.fd = map_.get()};
    case BPF_OBJ_GET_INFO_BY_FD:
      if (!is_map(thread, static_cast<int>(attr.info.bpf_fd))) return {.by_kernel = true};
      return map_info(call);
    case BPF_MAP_UPDATE_ELEM: {
      std::uint32_t fd = 0;
      process_.read(thread, attr.value, &fd, sizeof(fd));
      Opened* const event = event_of(thread, static_cast<int>(fd));
      if (event == nullptr) return {.by_kernel = !is_map(thread, static_cast<int>(attr.map_fd))};
      playing_.on_map_update(*event);
      return {};
    }
    case BPF_MAP_DELETE_ELEM:
      return {.by_kernel = !is_map(thread, static_cast<int>(attr.map_fd))};
    default:
      return {.by_kernel = true};
  }
}

CallAnswer EmulatedCalls::map_info(const seccomp_notif& call) {
  const pid_t thread = thread_of(call);
  union bpf_attr attr{};
  process_.read(thread, call.data.args[1], &attr, size_of(call.data.args[2], sizeof(attr)));
  bpf_map_info info{};
  info.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
  info.id = 1;
  info.key_size = info.value_size = 4;
  info.max_entries = static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF));
  std::strcpy(info.name, "conform");
  const std::size_t size = std::min<std::size_t>(attr.info.info_len, sizeof(info));
  return {.value = process_.write(thread, attr.info.info, &info, size) ? 0 : -EFAULT};
}

CallAnswer EmulatedCalls::control(const seccomp_notif& call) {
  if (event_of(thread_of(call), static_cast<int>(call.data.args[0])) == nullptr) {
    return {.by_kernel = true};
  }
  switch (static_cast<std::uint32_t>(call.data.args[1])) {
    case PERF_EVENT_IOC_ENABLE:
    case PERF_EVENT_IOC_DISABLE:
    case PERF_EVENT_IOC_RESET:
      return {};
    default:
      playing_.on_not_emulated(fmt::format("ioctl {:#x}", call.data.args[1]));
      return {.value = -ENOTTY};
  }
}

CallAnswer EmulatedCalls::add_to_epoll(const seccomp_notif& call) {
  const pid_t thread = thread_of(call);
  const Opened* const event = event_of(thread, static_cast<int>(call.data.args[2]));
  if (event == nullptr) return {.by_kernel = true};
  const auto instance = static_cast<int>(call.data.args[0]);
  const auto operation = static_cast<int>(call.data.args[1]);
  epoll_event asked{};
  if (operation != EPOLL_CTL_DEL) {
    if (!process_.read(thread, call.data.args[3], &asked, sizeof(asked))) {
      return {.value = -EFAULT};
    }
    event->take_flag();  // K28
  }
  asked.events |= EPOLLET;  // K27
  const os::Fd copy = process_.copy_of(thread, instance);
  if (::epoll_ctl(copy.get(), operation, event->wake.get(), &asked) != 0) return {.value = -errno};
  epolls_.push_back(instance);
  return {};
}

// A regular file is always ready, so this is answered here.
CallAnswer EmulatedCalls::poll(const seccomp_notif& call, bool is_ppoll) {
  const std::size_t count = size_of(call.data.args[1], 1024);
  Poll poll{call.id, thread_of(call), call.data.args[0], std::vector<pollfd>(count), {}};
  const std::size_t size = count * sizeof(pollfd);
  if (!process_.read(poll.thread, poll.address, poll.asked.data(), size)) {
    return {.by_kernel = true};
  }
  for (const pollfd& each : poll.asked) {
    poll.rings.push_back(each.fd >= 0 ? event_of(poll.thread, each.fd) : nullptr);
  }
  const auto is_ring = [](const Opened* ring) { return ring != nullptr; };
  if (std::ranges::none_of(poll.rings, is_ring)) return {.by_kernel = true};
  playing_.on_wait();
  const std::int64_t ready = look(poll);
  process_.write(poll.thread, poll.address, poll.asked.data(), size);
  if (ready != 0) return {.value = ready};
  const std::int64_t wait =
      is_ppoll ? milliseconds_of_ppoll(call) : static_cast<std::int32_t>(call.data.args[2]);
  if (wait == 0) return {};
  const auto longest = std::chrono::hours{1};
  poll.deadline = Clock::now() + (wait < 0 ? longest : milliseconds{wait});
  polls_.push_back(std::move(poll));
  return {.later = true};
}

// One look at the rings, as poll(2) reports them.
std::int64_t EmulatedCalls::look(Poll& poll) {
  std::int64_t ready = 0;
  for (std::size_t i = 0; i < poll.asked.size(); ++i) {
    pollfd& each = poll.asked[i];
    each.revents = 0;
    if (poll.rings[i] == nullptr || !poll.rings[i]->take_flag()) continue;
    each.revents = static_cast<short>(each.events & (POLLIN | POLLRDNORM));
    ready += each.revents != 0 ? 1 : 0;
  }
  return ready;
}

// A time of two words, each of 32 bits in the older call of i386. -1: there is no limit.
std::int64_t EmulatedCalls::milliseconds_of_ppoll(const seccomp_notif& call) const {
  const bool narrow = call.data.arch == AUDIT_ARCH_I386 && emulated(call.data) == Emulated::Ppoll;
  const std::uint64_t address = call.data.args[2];
  std::int64_t wide[2]{};
  std::int32_t two[2]{};
  const pid_t thread = thread_of(call);
  const bool there = address != 0 && (narrow ? process_.read(thread, address, two, sizeof(two))
                                             : process_.read(thread, address, wide, sizeof(wide)));
  if (!there) return -1;
  if (narrow) std::ranges::copy(two, wide);
  return wide[0] * 1000 + wide[1] / 1'000'000;
}

bool EmulatedCalls::maps_ring(pid_t thread, int fd, std::uint64_t length) {
  Opened* const event = event_of(thread, fd);
  const std::uint64_t pages = length / 4096 - 1;
  if (event == nullptr || event->ring != nullptr || length % 4096 != 0 ||
      !std::has_single_bit(pages) || length > kRingMax) {
    return false;
  }
  if (::ftruncate(event->file.get(), static_cast<off_t>(length)) != 0) return false;
  void* const memory = ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE,
                              MAP_SHARED, event->file.get(), 0);
  if (memory == MAP_FAILED) return false;
  mapping_ = event;
  event->memory = {static_cast<std::byte*>(memory), static_cast<std::size_t>(length)};
  playing_.on_map(*event, pages);
  return true;
}

void EmulatedCalls::end_polls() {
  const auto now = Clock::now();
  std::erase_if(polls_, [&](Poll& each) {
    if (!process_.is_waiting(each.id)) return true;
    const std::int64_t ready = look(each);
    if (ready == 0 && each.deadline > now) return false;
    process_.write(each.thread, each.address, each.asked.data(),
                   each.asked.size() * sizeof(pollfd));
    process_.answer_later(each.id, ready);
    return true;
  });
}

}  // namespace perfring::conformance
