// The calls by which a traced program maps its rings, and waits for them.

#include <fmt/format.h>
#include <linux/audit.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <utility>

#include "harness/conformance/emulated_calls.h"

namespace perfring::conformance {

using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t kRingMax = 64U << 20;

}  // namespace

// As perf_mmap() (kernel/events/core.c at v6.18) has it: shared, of a power of two of data pages
// from offset 0 on, and another mapping of a ring as long as the first.
MapAnswer EmulatedCalls::map(pid_t thread, const MapCall& call) {
  Opened* const event = event_of(thread, call.fd);
  if (event == nullptr) return {};
  const std::uint64_t pages = call.length / 4096 - 1;
  const auto refused = [&](const std::string& why) {
    playing_.on_map_refused(fmt::format("an mmap of {} bytes is refused: {}", call.length, why));
    return MapAnswer{.error = EINVAL};
  };
  if (call.length % 4096 != 0 || !std::has_single_bit(pages)) {
    return refused("a control page and a power of two of data pages");
  }
  if ((call.flags & MAP_SHARED) == 0 || call.offset != 0 || call.length > kRingMax) {
    return refused("shared, from offset 0 on, 64 MiB at most");
  }
  if (!event->memory.empty() && event->memory.size() != call.length) {
    return refused("the ring is mapped already, with another length");
  }
  if ((call.protection & PROT_WRITE) == 0) {
    playing_.on_not_emulated("an overwritable ring, one that is mapped for reading only,");
  }
  if ((call.flags & MAP_FIXED) != 0) playing_.on_not_emulated("a ring at an address of its own");
  mapping_ = event;
  if (!event->memory.empty()) return {.is_ring = true};
  if (!make_memory(*event, call.length)) return {};
  playing_.on_map(*event);
  return {.is_ring = true};
}

bool EmulatedCalls::make_memory(Opened& event, std::uint64_t length) {
  const int fd = event.file.get();
  if (emitter_ == nullptr && ::ftruncate(fd, static_cast<off_t>(length)) != 0) return false;
  void* const memory =
      ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return false;
  event.memory = {static_cast<std::byte*>(memory), static_cast<std::size_t>(length)};
  return true;
}

CallAnswer EmulatedCalls::add_to_epoll(const seccomp_notif& call) {
  const pid_t thread = thread_of(call);
  const auto fd = static_cast<int>(call.data.args[2]);
  Opened* const event = event_of(thread, fd);
  const auto instance = static_cast<int>(call.data.args[0]);
  auto operation = static_cast<int>(call.data.args[1]);
  const bool nested = std::ranges::find(epolls_, fd) != epolls_.end();
  if (event == nullptr && !nested) return {.by_kernel = true};
  if (emitter_ != nullptr || nested) {
    if (emitter_ == nullptr) playing_.on_not_emulated("an epoll instance in another");
    epolls_.push_back(instance);
    return {.by_kernel = true};
  }
  if (operation == EPOLL_CTL_ADD && event->epoll == instance) {
    operation = EPOLL_CTL_MOD;  // a call that a signal has interrupted comes once more
  } else if (operation == EPOLL_CTL_ADD && event->epoll >= 0) {
    playing_.on_not_emulated("a ring in two epoll instances");  // each would report an eventfd
  }
  event->epoll = operation == EPOLL_CTL_DEL ? -1 : instance;
  epoll_event asked{};
  if (operation != EPOLL_CTL_DEL) {
    if (!process_.read(thread, call.data.args[3], &asked, sizeof(asked))) {
      return {.value = -EFAULT};
    }
    event->take_flag();  // K28
    // The kernel's report takes the flag even if it is not asked for (K26).
    if ((asked.events & (EPOLLIN | EPOLLRDNORM)) != EPOLLIN) {
      playing_.on_not_emulated("epoll for other than EPOLLIN");
    }
  }
  asked.events &= ~std::uint32_t{EPOLLOUT | EPOLLWRNORM};  // an eventfd is ready for them
  asked.events |= EPOLLET;                                 // K27
  const os::Fd copy = process_.copy_of(thread, instance);
  if (::epoll_ctl(copy.get(), operation, event->wake.get(), &asked) != 0) return {.value = -errno};
  epolls_.push_back(instance);
  return {};
}

// A regular file is always ready, so this is answered here.
CallAnswer EmulatedCalls::poll(const seccomp_notif& call, bool is_ppoll) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(call.data.args[1], 1024));
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
  if (emitter_ != nullptr) {
    playing_.on_wait();
    return {.by_kernel = true};
  }
  const auto in_epoll = [](const Opened* ring) { return ring != nullptr && ring->epoll >= 0; };
  if (std::ranges::any_of(poll.rings, in_epoll)) {
    playing_.on_not_emulated("a ring that is waited for by epoll and by poll");
  }
  // One that a signal interrupted while it was answered has nothing to wait for.
  const auto is_unanswered = [&](const Opened* ring) { return unanswered_.contains(ring); };
  if (std::ranges::none_of(poll.rings, is_unanswered)) playing_.on_wait();
  const std::int64_t wait =
      is_ppoll ? milliseconds_of_ppoll(call) : static_cast<std::int32_t>(call.data.args[2]);
  const auto longest = std::chrono::hours{1};
  poll.deadline = Clock::now() + (wait < 0 ? longest : milliseconds{wait});
  polls_.push_back(std::move(poll));
  end_polls();
  return {.later = true};
}

CallAnswer EmulatedCalls::select(const seccomp_notif& call) {
  std::array<std::uint8_t, 128> set{};
  const pid_t thread = thread_of(call);
  const std::size_t count = std::min<std::uint64_t>(call.data.args[0], 8 * set.size());
  for (std::size_t argument = 1; argument <= 3; ++argument) {
    const std::uint64_t address = call.data.args[argument];
    if (address == 0 || !process_.read(thread, address, set.data(), (count + 7) / 8)) continue;
    for (std::size_t fd = 0; fd < count; ++fd) {
      const bool asked = (set[fd / 8] >> fd % 8 & 1) != 0;
      if (!asked || event_of(thread, static_cast<int>(fd)) == nullptr) continue;
      emitter_ != nullptr ? playing_.on_wait() : playing_.on_not_emulated("select");
      return {.by_kernel = true};
    }
  }
  return {.by_kernel = true};
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

bool EmulatedCalls::is_waited_for() const {
  if (!polls_.empty()) return true;
  const bool i386 = !events_.empty() && events_.back()->of_32_bits;
  return std::ranges::any_of(process_.calls(), [&](seccomp_data call) {
    call.arch = i386 ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64;
    const Emulated which = emulated(call);
    if (which == Emulated::EpollWait) {
      return std::ranges::find(epolls_, static_cast<int>(call.args[0])) != epolls_.end();
    }
    if (emitter_ == nullptr) return false;  // a poll would be answered here
    if (which == Emulated::Select) return call.args[0] != 0;
    const bool polls =
        which == Emulated::Poll || which == Emulated::Ppoll || which == Emulated::PpollTime64;
    return polls && call.args[1] != 0;
  });
}

void EmulatedCalls::end_polls() {
  const auto now = Clock::now();
  std::erase_if(polls_, [&](Poll& each) {
    if (!process_.is_waiting(each.id)) return true;
    const std::int64_t ready = look(each);
    if (ready == 0 && each.deadline > now) return false;
    process_.write(each.thread, each.address, each.asked.data(),
                   each.asked.size() * sizeof(pollfd));
    const bool answered = process_.answer_later(each.id, ready);
    for (std::size_t i = 0; i < each.asked.size(); ++i) {
      if (each.asked[i].revents == 0 || each.rings[i] == nullptr) continue;
      if (answered) {
        unanswered_.erase(each.rings[i]);
      } else {
        each.rings[i]->put_flag_back();
        unanswered_.insert(each.rings[i]);
      }
    }
    return true;
  });
}

}  // namespace perfring::conformance
