#ifndef PROPTESTS_WAITERS_H_
#define PROPTESTS_WAITERS_H_

// Consumers of several rings that wait, one step at a time: the wait loop of the README, by poll
// and by epoll. Between any two steps the producers may do anything.

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "harness/faults/loop_faults.h"
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

// The wait loop: registers, drains, waits; drains all rings after each report. Or with a fault.
template <class By, faults::Waits W = faults::Waits::Documented>
class Waiter {
 public:
  // `drains`: of each ring, to be called for all it holds.
  Waiter(const std::vector<kernel::perf_event*>& events, std::vector<std::function<void()>> drains)
      : by_{events}, drains_{std::move(drains)} {}

  // The next thing that its thread does. Asleep, it does nothing.
  void step() {
    using enum faults::Waits;
    switch (next_) {
      case Next::Begin:
        by_.begin();
        next_ = Next::Wait;
        if (W != NoFirstDrain) drain_all();
        return;
      case Next::Drain:
        drains_[ring_++]();
        if (ring_ < drains_.size() && W != DrainsOneRing) return;
        next_ = W == ClearsAfterDrain ? Next::Clear : Next::Wait;
        return;
      case Next::Clear:
        by_.look();
        next_ = Next::Wait;
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

 private:
  enum class Next { Begin, Drain, Clear, Wait };
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

}  // namespace perfring::proptests

#endif  // PROPTESTS_WAITERS_H_
