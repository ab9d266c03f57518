#ifndef HARNESS_STRESS_SLEEPERS_H_
#define HARNESS_STRESS_SLEEPERS_H_

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <future>
#include <list>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "harness/faults/loop_faults.h"
#include "harness/kernel/cpu.h"
#include "harness/kernel/eventpoll.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/payload.h"
#include "harness/program/checked.h"
#include "harness/stress/run.h"
#include "harness/stress/stress_consumer.h"
#include "harness/stress/stress_producer.h"
#include "perfring/ring/ring.h"

namespace perfring::stress {

using faults::Waits;

class Eventfd {
 public:
  Eventfd() : fd_{checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")} {}
  ~Eventfd() { ::close(fd_); }
  Eventfd(const Eventfd&) = delete;
  Eventfd& operator=(const Eventfd&) = delete;
  int get() const { return fd_; }
  void clear() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t ignored = ::read(fd_, &count, sizeof(count));
  }

 private:
  int fd_;
};

// A ring, the thread that writes to it in bursts, and a consumer that sleeps on the ring's eventfd.
template <class Base, class R>
struct SleepersRing {
  explicit SleepersRing(const Setting& setting) : ring{setting}, producer{ring}, consumer{ring} {}

  // The number of unread bytes for which nobody needs to be woken (K30).
  std::uint64_t quiet() const { return ring.settings().watermark ? ring.settings().wakeup : 0; }

  // Before each burst, lets the consumer read the records for which it was woken, and fall asleep
  // again. No later wakeup can then make up for a lost one.
  void write(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) {
      if (producer.unread() > quiet()) {
        pause();
        continue;
      }
      if (producer.random()() % 4 == 0) pause();
      for (auto burst = producer.random()() % 12; burst != 0; --burst) producer.output();
    }
  }

  StressRing ring;
  Eventfd eventfd;
  StressProducer<Base> producer;
  StressConsumer<R> consumer;
  std::optional<kernel::EventfdWaiter> registration;
  std::future<void> thread;

 private:
  void pause() {
    const std::timespec time{0, static_cast<long>(producer.random()() % 100'000)};
    ::nanosleep(&time, nullptr);
  }
};

// If no wakeup need come, there must be room for one more record with its LOST.
inline Setting draw_sleepers(Setting setting, bool nested, Random& random) {
  setting.levels = nested ? kLevelsMax : 1;
  setting.payload_max = std::min(setting.payload_max, longest_payload(ring_size(setting)) / 4);
  setting.calm = 64;
  if (random() % 2 == 0) return setting;
  const auto room = static_cast<std::uint32_t>(ring_size(setting)) - 8 - 24;
  const auto record = static_cast<std::uint32_t>(oracle::record_size(setting.payload_max));
  setting.ring.watermark = true;
  setting.ring.wakeup = 1 + random() % (room - record);
  return setting;
}

// One round of sleepers: the wait loop over its rings.
template <class Base, Waits W, class R>
class SleepersRound {
 public:
  SleepersRound(const std::vector<Setting>& settings, const Run& run, PartReport& outcome)
      : run_{run}, outcome_{outcome}, nested_{settings.front().levels > 1} {
    for (const Setting& setting : settings) rings_.emplace_back(setting);
  }

  void run(std::chrono::milliseconds duration) {
    const StopGuard stop_guard{stop_};  // stops before the rings join their threads
    for (auto& ring : rings_) {
      for (auto early = ring.producer.random()() % 4; early != 0; --early) ring.producer.output();
      ring.registration.emplace(ring.ring.file(), ring.eventfd.get());
      ring.thread = start_thread([this, &ring] { ring.write(stop_); });
    }
    if (W != Waits::NoFirstDrain) drain_all();
    for (const auto end = Clock::now() + duration; Clock::now() < end && outcome_.holds();) wait();
    stop_.store(true, std::memory_order_relaxed);
    for (auto& ring : rings_) finish(ring);
  }

 private:
  void wait() {
    std::vector<pollfd> fds;
    for (const auto& ring : rings_) fds.push_back({ring.eventfd.get(), POLLIN, 0});
    const auto most = nested_ ? kNestedPatience : run_.patience;
    const std::timespec timeout{static_cast<std::time_t>(most.count() / 1000),
                                static_cast<long>(most.count() % 1000 * 1'000'000)};
    const int ready = ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
    if (ready < 0) return;  // interrupted by a signal
    if (ready == 0) return timed_out();
    ++outcome_.woken;
    if (W == Waits::ClearsAfterDrain) drain_all();
    for (const auto& ring : rings_) ring.eventfd.clear();
    if (W != Waits::ClearsAfterDrain) drain_all();
  }

  void drain_all() {
    for (auto& ring : rings_) ring.consumer.drain_in_parts();
  }

  void timed_out() {
    for (auto& ring : rings_) {
      const perf_event_mmap_page& page = ring.ring.page();
      const auto unread = static_cast<std::uint32_t>(
          __atomic_load_n(&page.data_head, __ATOMIC_RELAXED) - page.data_tail);
      if (unread <= ring.quiet()) continue;
      ++outcome_.timed_out;
      if (nested_) continue;
      ring.consumer.violate(oracle::Invariant::awake,
                            "slept for " + std::to_string(run_.patience.count()) + " ms with " +
                                std::to_string(unread) + " bytes in the ring");
      outcome_.violate(*ring.consumer.violation(), ring.ring.setting());
    }
    drain_all();
  }

  void finish(SleepersRing<Base, R>& ring) {
    ring.thread.get();
    const oracle::Ledger& ledger = ring.producer.ledger();
    ring.consumer.finish();
    ring.consumer.settle(ledger.totals(), ledger.unreported());
    const Setting& setting = ring.ring.setting();
    if (outcome_.holds() && ring.consumer.violation()) {
      outcome_.violate(*ring.consumer.violation(), setting);
    }
    if (ledger.violation()) outcome_.violate(*ledger.violation(), setting);
    outcome_.attempted += ledger.totals().attempts();
    outcome_.delivered += ring.consumer.received().delivered;
    outcome_.lost += ledger.totals().lost;
  }

  static constexpr std::chrono::milliseconds kNestedPatience{20};

  const Run& run_;
  PartReport& outcome_;
  const bool nested_;
  std::atomic<bool> stop_{false};
  std::list<SleepersRing<Base, R>> rings_;
};

// Consumers that sleep until they are woken: with wakeup_events = 1 or with a watermark.
//
// If writers nest, the kernel itself sometimes loses a wakeup: if an interrupt earns it between the
// outer writer's nest++ and its read of rb->wakeup (perf_output_get_handle), neither writer sees
// the change. In rounds with nesting the consumer has a short timeout, as lib recommends, and using
// the timeout is not a violation. In the other rounds the consumer must never need it.
template <class Base = kernel::HardwareCpu, Waits W = Waits::Documented, class R = Ring<>>
PartReport sleepers(const Run& run) {
  return rounds("sleepers", run, [&](PartReport& outcome, Random& random) {
    const bool nested = W == Waits::Documented && random() % 4 == 0;
    std::vector<Setting> settings = draw_rings(random, run);
    for (Setting& setting : settings) setting = draw_sleepers(setting, nested, random);
    SleepersRound<Base, W, R>{settings, run, outcome}.run(std::chrono::milliseconds{100});
  });
}

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_SLEEPERS_H_
