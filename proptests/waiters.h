#ifndef PROPTESTS_WAITERS_H_
#define PROPTESTS_WAITERS_H_

// Consumers of several rings that run the README's wait loop, by poll or by epoll, one step at a
// time. Producers may do anything between two steps.

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "harness/faults/loop_faults.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"

namespace perfring::proptests {

// The wait queue entry of a thread asleep in poll(2).
struct Sleeper final : kernel::wait_queue_entry {
  void wake() override { woken = true; }
  bool woken = false;
};

// Waits by poll(2): like a thread in poll(2), it checks the events once, and again each time that
// it is woken.
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

// Waits by epoll(7).
class ByEpoll {
 public:
  explicit ByEpoll(std::vector<kernel::perf_event*> events) : events_{std::move(events)} {}

  void begin() {
    for (kernel::perf_event* const each : events_) epoll_.add(*each, EPOLLIN, 0);
  }
  bool look() { return epoll_.wait(ready_) != 0; }
  bool woken() { return true; }  // eventpoll::wait() does nothing unless something has woken it

 private:
  std::vector<kernel::perf_event*> events_;
  std::array<epoll_event, 8> ready_{};
  kernel::eventpoll epoll_;
};

// The wait loop: registers, drains, then waits, and drains all rings after each report. W may plant
// a fault in it.
template <class By, faults::Waits W = faults::Waits::Documented>
class Waiter {
 public:
  // `drains`: one function for each ring, which drains it completely.
  Waiter(const std::vector<kernel::perf_event*>& events, std::vector<std::function<void()>> drains)
      : by_{events}, drains_{std::move(drains)} {}

  // Performs the next step of the consumer's thread. Does nothing while the thread is asleep.
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

  // Ends the wait, as a timeout does.
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
