#ifndef PROPTESTS_WAITERS_H_
#define PROPTESTS_WAITERS_H_

// Consumers of several rings that wait, one step at a time: the wait loop of the README, by poll
// and by epoll, and the faults of the catalogue that are a wait loop's. Between any two steps the
// producers may do anything.

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"

namespace perfring::proptests {

// The wait queue entry of a thread that sleeps in poll(2).
struct Sleeper final : kernel::wait_queue_entry {
  void wake() override { woken = true; }
  bool woken = false;
};

// poll(2). As a thread in it does, it looks once, and once more when it is woken.
class ByPoll {
 public:
  explicit ByPoll(const std::vector<kernel::perf_event*>& events) {
    for (kernel::perf_event* const each : events) {
      fds_.push_back({each, EPOLLIN, 0});
      each->waitq.push_back(&sleeper_);
    }
  }
  ~ByPoll() {
    for (const kernel::pollfd& each : fds_) std::erase(each.event->waitq, &sleeper_);
  }
  ByPoll(const ByPoll&) = delete;
  ByPoll& operator=(const ByPoll&) = delete;

  void begin() {}  // nothing to register with
  bool look() {
    sleeper_.woken = false;
    return kernel::do_poll(fds_) != 0;
  }
  bool woken() { return sleeper_.woken; }

 private:
  std::vector<kernel::pollfd> fds_;
  Sleeper sleeper_;
};

// epoll(7).
class ByEpoll {
 public:
  explicit ByEpoll(std::vector<kernel::perf_event*> events) : events_{std::move(events)} {}

  void begin() {
    for (kernel::perf_event* const each : events_) epoll_.add(*each, EPOLLIN, 0);
  }
  bool look() { return epoll_.wait(ready_) != 0; }
  bool woken() { return true; }  // its wait() does nothing unless something has woken it

 private:
  std::vector<kernel::perf_event*> events_;
  std::array<epoll_event, 8> ready_{};
  kernel::eventpoll epoll_;
};

// The wait loop: registers, drains, waits; drains all rings after each report.
template <class By>
class Waiter {
 public:
  // `drains`: of each ring, to be called for all it holds.
  Waiter(const std::vector<kernel::perf_event*>& events, std::vector<std::function<void()>> drains)
      : by_{events}, drains_{std::move(drains)} {}

  // The next thing that its thread does. Asleep, it does nothing.
  void step() {
    switch (next_) {
      case Next::Begin:
        by_.begin();
        return drain_all();
      case Next::Drain:
        drains_[ring_++]();
        if (ring_ == drains_.size()) next_ = Next::Wait;
        return;
      case Next::Wait:
        if (asleep_ && !by_.woken()) return;
        asleep_ = !by_.look();
        if (!asleep_) drain_all();
    }
  }
  bool asleep() const { return asleep_; }

  // The end of the wait if nobody wakes it.
  void times_out() {
    asleep_ = false;
    drain_all();
  }

 protected:
  enum class Next { Begin, Drain, Wait };
  void drain_all() {
    ring_ = 0;
    next_ = Next::Drain;
  }

  By by_;
  std::vector<std::function<void()>> drains_;
  Next next_ = Next::Begin;
  std::size_t ring_ = 0;
  bool asleep_ = false;
};

// no_first_drain: registers after it has drained, and takes the flags of what came in between
// (K28).
struct NoFirstDrain : Waiter<ByEpoll> {
  using Waiter::Waiter;
  void step() {
    const bool registers = next_ == Next::Wait && !registered_;
    if (next_ == Next::Begin) return drain_all();
    if (!registers) return Waiter::step();
    by_.begin();
    registered_ = true;
  }
  bool registered_ = false;
};

// clears_after_drain: takes away the flags that its drains have made stale; and with them, those
// that are not (K26).
struct ClearsAfterDrain : Waiter<ByPoll> {
  using Waiter::Waiter;
  void step() {
    if (std::exchange(clears_, false)) {
      by_.look();
      return;
    }
    const bool was_draining = next_ == Next::Drain;
    Waiter::step();
    clears_ = was_draining && next_ == Next::Wait;
  }
  bool clears_ = false;
};

// drains_one_ring.
struct DrainsOneRing : Waiter<ByPoll> {
  using Waiter::Waiter;
  void step() {
    if (next_ == Next::Drain && ring_ == 1) {
      next_ = Next::Wait;
      return;
    }
    Waiter::step();
  }
};

}  // namespace perfring::proptests

#endif  // PROPTESTS_WAITERS_H_
