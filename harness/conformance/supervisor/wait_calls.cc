#include "harness/conformance/supervisor/wait_calls.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace perfring::conformance {

using std::chrono::milliseconds;

namespace {

// The events that each of select(2)'s sets asks for and reports (fs/select.c at v6.18: POLLIN_SET,
// POLLOUT_SET, POLLEX_SET).
struct Set {
  short requested;
  short reported;
};
constexpr std::array<Set, 3> kSets{{{POLLIN, POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR},
                                    {POLLOUT, POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR},
                                    {POLLPRI, POLLPRI}}};

// Returns the size of a set. The kernel reads and writes whole words of the program's size.
std::size_t bytes_of_set(const seccomp_data& call) {
  const std::uint64_t word = call.arch == AUDIT_ARCH_I386 ? 4 : 8;
  const std::uint64_t bits = std::min<std::uint64_t>(call.args[0], 65536);
  return static_cast<std::size_t>((bits + 8 * word - 1) / (8 * word) * word);
}

bool has_mask(const seccomp_data& call) {
  const NotifiedCall which = notified_call(call);
  if (which == NotifiedCall::Poll || which == NotifiedCall::Select) return false;
  return call.args[is_select(which) ? 5 : 3] != 0;
}

// Whether `fd` is a signalfd. A signalfd reports the signals of the process that polls it, so this
// process cannot poll a copy.
bool is_signalfd(int fd) {
  std::error_code error;
  const auto link = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error);
  return link == "anon_inode:[signalfd]";
}

// Where a call has its time limit: two words, the second in microseconds or nanoseconds.
struct Time {
  std::uint64_t address = 0;
  bool is_narrow = false;  // 32-bit words, in the older i386 calls
  std::int64_t unit = 1;   // of the second word, in nanoseconds
};
// Returns nullopt if the call has no time limit.
std::optional<Time> time_of(const seccomp_data& call) {
  const NotifiedCall which = notified_call(call);
  const bool old = which != NotifiedCall::PpollTime64 && which != NotifiedCall::PselectTime64;
  const Time time{.address = call.args[is_select(which) ? 4 : 2],
                  .is_narrow = call.arch == AUDIT_ARCH_I386 && old,
                  .unit = which == NotifiedCall::Select ? 1000 : 1};
  return time.address == 0 ? std::nullopt : std::optional{time};
}

}  // namespace

CallAnswer WaitCalls::epoll_ctl(const Tracee& caller, const seccomp_data& call) {
  const auto fd = static_cast<int>(call.args[2]);
  ProgramEvent* const event = events_.find(caller, fd);
  const auto instance = static_cast<int>(call.args[0]);
  auto operation = static_cast<int>(call.args[1]);
  const bool nested = is_known(fd);
  if (event == nullptr && !nested) return {.by_kernel = true};
  if (backend_.carries_out_calls() || nested) {
    if (!backend_.carries_out_calls()) listener_.on_not_emulated("an epoll instance in another");
    epolls_.push_back(instance);
    return {.by_kernel = true};
  }
  if (operation == EPOLL_CTL_ADD && event->epoll == instance) {
    operation = EPOLL_CTL_MOD;  // the program repeats a call that a signal has interrupted
  } else if (operation == EPOLL_CTL_ADD && event->epoll >= 0) {
    listener_.on_not_emulated("a ring in two epoll instances");  // both would report the eventfd
  }
  event->epoll = operation == EPOLL_CTL_DEL ? -1 : instance;
  epoll_event requested{};
  if (operation != EPOLL_CTL_DEL) {
    if (!caller.read(call.args[3], &requested, sizeof(requested))) {
      return {.value = -EFAULT};
    }
    event->take_flag();  // K28
    // A report clears the kernel's flag even if EPOLLIN was not asked for (K26).
    if ((requested.events & (EPOLLIN | EPOLLRDNORM)) != EPOLLIN) {
      listener_.on_not_emulated("epoll for events other than EPOLLIN");
    }
  }
  requested.events &=
      ~std::uint32_t{EPOLLOUT | EPOLLWRNORM};  // an eventfd is always ready for them
  requested.events |= EPOLLET;                 // K27
  const os::Fd copy = caller.copy_of(instance);
  if (::epoll_ctl(copy.get(), operation, event->wake.get(), &requested) != 0)
    return {.value = -errno};
  epolls_.push_back(instance);
  return {};
}

bool WaitCalls::is_known(int epoll) const {
  return std::ranges::find(epolls_, epoll) != epolls_.end();
}

CallAnswer WaitCalls::epoll_wait(const seccomp_data& call) {
  if (is_known(static_cast<int>(call.args[0]))) listener_.on_wait();
  return {.by_kernel = true};
}

// The program's descriptor of a ring is a regular file, which is always ready: answer the call
// here.
CallAnswer WaitCalls::poll(const Tracee& caller, const seccomp_notif& call) {
  Poll poll{caller, call};
  if (!read_descriptors(poll)) return {.by_kernel = true};
  for (const pollfd& each : poll.fds) {
    poll.rings.push_back(each.fd >= 0 ? events_.find(caller, each.fd) : nullptr);
  }
  const auto is_ring = [](const ProgramEvent* ring) { return ring != nullptr; };
  if (std::ranges::none_of(poll.rings, is_ring)) return {.by_kernel = true};
  bool has_signalfd = false;
  for (std::size_t i = 0; i < poll.fds.size(); ++i) {
    const int fd = poll.rings[i] == nullptr ? poll.fds[i].fd : -1;
    os::Fd copy = fd >= 0 ? caller.copy_of(fd) : os::Fd{};
    has_signalfd = has_signalfd || is_signalfd(copy.get());
    const bool is_closed = fd >= 0 && copy.get() < 0;
    if (is_closed && is_select(notified_call(call.data))) return {.by_kernel = true};  // EBADF
    poll.others.push_back(std::move(copy));
  }
  if (backend_.carries_out_calls()) {
    listener_.on_wait();
    return {.by_kernel = true};
  }
  if (has_signalfd) listener_.on_not_emulated("a poll of a ring and a signalfd");
  const auto in_epoll = [](const ProgramEvent* ring) {
    return ring != nullptr && ring->epoll >= 0;
  };
  if (std::ranges::any_of(poll.rings, in_epoll)) {
    listener_.on_not_emulated("a ring that is waited for by epoll and by poll");
  }
  // A poll that a signal interrupted while it was answered gets that answer now, and no new turn.
  const auto is_unanswered = [&](const ProgramEvent* ring) { return unanswered_.contains(ring); };
  if (std::ranges::none_of(poll.rings, is_unanswered)) listener_.on_wait();
  poll.deadline = Clock::now() + requested_timeout(caller, call.data);
  polls_.push_back(std::move(poll));
  end_polls();
  return {.later = true};
}

// Reads the descriptors that the call waits for, and the events of each. The events of a select
// follow from the sets that contain the descriptor.
bool WaitCalls::read_descriptors(Poll& poll) {
  const seccomp_data& call = poll.call.data;
  if (!is_select(notified_call(call))) {
    poll.fds.resize(static_cast<std::size_t>(std::min<std::uint64_t>(call.args[1], 1024)));
    return poll.caller.read(call.args[0], poll.fds.data(), poll.fds.size() * sizeof(pollfd));
  }
  std::map<int, short> events;
  std::vector<std::uint8_t> set(bytes_of_set(call));
  for (std::size_t i = 0; i < kSets.size(); ++i) {
    if (call.args[1 + i] == 0) continue;
    if (!poll.caller.read(call.args[1 + i], set.data(), set.size())) return false;
    for (std::uint32_t fd = 0; fd < static_cast<std::uint32_t>(call.args[0]); ++fd) {
      if (fd / 8 >= set.size()) break;
      if ((set[fd / 8] >> fd % 8 & 1) != 0) events[static_cast<int>(fd)] |= kSets[i].requested;
    }
  }
  for (const auto& [fd, of] : events) poll.fds.push_back({fd, of, 0});
  return true;
}

// Writes the result to the program's memory. Returns the return value of the call.
std::int64_t WaitCalls::write_reported(const Poll& poll) {
  const seccomp_data& call = poll.call.data;
  if (!is_select(notified_call(call))) {
    poll.caller.write(call.args[0], poll.fds.data(), poll.fds.size() * sizeof(pollfd));
    return std::ranges::count_if(poll.fds, [](const pollfd& each) { return each.revents != 0; });
  }
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < kSets.size(); ++i) {
    std::vector<std::uint8_t> set(bytes_of_set(call));
    for (const pollfd& each : poll.fds) {
      if ((each.events & kSets[i].requested) == 0 || (each.revents & kSets[i].reported) == 0)
        continue;
      set[static_cast<std::size_t>(each.fd / 8)] |= static_cast<std::uint8_t>(1U << each.fd % 8);
      ++bits;
    }
    if (call.args[1 + i] != 0) poll.caller.write(call.args[1 + i], set.data(), set.size());
  }
  return bits;
}

// Checks the descriptors once, as poll(2) does. Returns true if there is something to report.
bool WaitCalls::update_events(Poll& poll) {
  const bool selects = is_select(notified_call(poll.call.data));
  bool ready = false;
  for (std::size_t i = 0; i < poll.fds.size(); ++i) {
    pollfd& each = poll.fds[i];
    each.revents = 0;
    if (poll.rings[i] != nullptr) {
      const bool flag = poll.rings[i]->take_flag();
      each.revents = static_cast<short>(flag ? each.events & (POLLIN | POLLRDNORM) : 0);
    } else if (each.fd >= 0) {
      pollfd other{poll.others[i].get(), each.events, 0};
      const bool is_open = other.fd >= 0 && ::poll(&other, 1, 0) >= 0;
      each.revents = is_open ? other.revents : static_cast<short>(POLLNVAL);
    }
    bool counts = !selects && each.revents != 0;
    for (const Set& set : kSets) {
      counts = counts || ((each.events & set.requested) != 0 && (each.revents & set.reported) != 0);
    }
    ready = ready || counts;
  }
  return ready;
}

std::chrono::nanoseconds WaitCalls::requested_timeout(const Tracee& caller,
                                                      const seccomp_data& call) {
  constexpr std::chrono::hours kLongest{1};
  if (notified_call(call) == NotifiedCall::Poll) {
    const auto requested = static_cast<std::int32_t>(call.args[2]);
    return requested < 0 ? kLongest
                         : std::min<std::chrono::nanoseconds>(kLongest, milliseconds{requested});
  }
  const auto time = time_of(call);
  std::array<std::int64_t, 2> wide{};
  std::array<std::int32_t, 2> narrow{};
  if (!time || !(time->is_narrow ? caller.read(time->address, &narrow, sizeof(narrow))
                                 : caller.read(time->address, &wide, sizeof(wide)))) {
    return kLongest;
  }
  if (time->is_narrow) std::ranges::copy(narrow, wide.begin());
  if (wide[0] >= std::chrono::seconds{kLongest}.count()) return kLongest;
  return std::chrono::seconds{wide[0]} + std::chrono::nanoseconds{wide[1] * time->unit};
}

// Writes the remaining time back, as the kernel does at the end of any such call but poll(2)
// (fs/select.c, poll_select_finish() at v6.18).
void WaitCalls::write_time_left(const Poll& poll, Clock::time_point now) {
  const auto time =
      notified_call(poll.call.data) == NotifiedCall::Poll ? std::nullopt : time_of(poll.call.data);
  if (!time) return;
  const auto left = std::max(poll.deadline - now, Clock::duration::zero());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const std::array<std::int64_t, 2> wide{
      seconds.count(), std::chrono::nanoseconds{left - seconds}.count() / time->unit};
  const std::array narrow{static_cast<std::int32_t>(wide[0]), static_cast<std::int32_t>(wide[1])};
  time->is_narrow ? poll.caller.write(time->address, &narrow, sizeof(narrow))
                  : poll.caller.write(time->address, &wide, sizeof(wide));
}

bool WaitCalls::is_waited_for() const {
  if (!polls_.empty()) return true;
  const bool i386 = events_.are_of_32_bits();
  return std::ranges::any_of(process_.calls(), [&](seccomp_data call) {
    call.arch = i386 ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64;
    const NotifiedCall which = notified_call(call);
    if (which == NotifiedCall::EpollWait) {
      return is_known(static_cast<int>(call.args[0]));
    }
    if (!backend_.carries_out_calls())
      return false;  // the polls that are answered here are in polls_
    if (is_select(which)) return call.args[0] != 0;
    return is_poll(which) && call.args[1] != 0;
  });
}

void WaitCalls::end_polls() {
  const auto now = Clock::now();
  std::erase_if(polls_, [&](Poll& each) {
    if (!process_.is_waiting(each.call.id)) return true;
    if (!update_events(each) && each.deadline > now) return false;
    const std::int64_t value = write_reported(each);
    write_time_left(each, now);
    const bool answered = process_.answer(each.call.id, {.value = value});
    for (std::size_t i = 0; i < each.fds.size(); ++i) {
      if (each.fds[i].revents == 0 || each.rings[i] == nullptr) continue;
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

void WaitCalls::end_masked_polls() {
  std::erase_if(polls_, [&](Poll& poll) {
    if (!has_mask(poll.call.data)) return false;
    for (std::size_t i = 0; i < poll.fds.size(); ++i) {
      const bool is_ring = poll.rings[i] != nullptr;
      if (is_ring) poll.fds[i].fd = -1;
      poll.fds[i].revents = static_cast<short>(is_ring ? 0 : -1);
    }
    write_reported(poll);
    process_.answer(poll.call.id, {.by_kernel = true});
    return true;
  });
}

}  // namespace perfring::conformance
