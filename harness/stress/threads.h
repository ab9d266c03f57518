#ifndef HARNESS_STRESS_THREADS_H_
#define HARNESS_STRESS_THREADS_H_

#include <atomic>
#include <future>
#include <list>
#include <thread>

#include "harness/stress/consumer.h"
#include "harness/stress/producer.h"
#include "harness/stress/run.h"

namespace perfring::stress {

// A ring, the thread that writes to it, and who drains it.
template <class Base, class Consuming>
struct ThreadedRing {
  explicit ThreadedRing(const Setting& setting) : ring{setting}, producer{ring}, consumer{ring} {}

  void start(const std::atomic<bool>& stop) {
    thread = on_a_thread([this, &stop] { producer.work(stop); });
  }

  StressRing ring;
  StressProducer<Base> producer;
  Consuming consumer;
  std::future<void> thread;  // last: to destroy it is to wait for the thread
};

template <class Base, class Consuming>
void account(ThreadedRing<Base, Consuming>& threaded, PartOutcome& outcome) {
  Consuming& consumer = threaded.consumer;
  const oracle::Ledger& ledger = threaded.producer.ledger();
  consumer.finish();
  consumer.settle(ledger.totals(), ledger.unreported());
  const Setting& setting = threaded.ring.setting();
  if (const auto violation = consumer.violation()) outcome.violate(*violation, setting);
  if (ledger.violation()) outcome.violate(*ledger.violation(), setting);
  outcome.attempted += ledger.totals().attempts();
  outcome.delivered += consumer.received().delivered;
  outcome.lost += ledger.totals().lost;
}

// Rings that are written to by a thread each and drained by this one, which never sleeps. Nothing
// orders writer and consumer but the rings themselves.
template <class Base = kernel::HardwareCpu, class Consuming = StressConsumer<>>
PartOutcome threads(const Run& run) {
  constexpr std::chrono::milliseconds kRound{50};
  return rounds("threads", run, [&](PartOutcome& outcome, Random& random) {
    std::atomic<bool> stop{false};
    std::list<ThreadedRing<Base, Consuming>> rings;
    const StopAtTheEnd stop_at_the_end{stop};  // before the rings wait for their threads
    for (const Setting& setting : draw_rings(random, run)) rings.emplace_back(setting);
    for (auto& threaded : rings) threaded.start(stop);
    for (const auto end = Clock::now() + kRound; Clock::now() < end;) {
      bool any = false;
      for (auto& threaded : rings) any |= threaded.consumer.drain();
      if (!any) std::this_thread::yield();
    }
    stop.store(true, std::memory_order_relaxed);
    for (auto& threaded : rings) {
      threaded.thread.get();
      account(threaded, outcome);
    }
  });
}

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_THREADS_H_
