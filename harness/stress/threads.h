#ifndef HARNESS_STRESS_THREADS_H_
#define HARNESS_STRESS_THREADS_H_

#include <atomic>
#include <future>
#include <memory>

#include "harness/kernel/cpu.h"
#include "harness/oracle/ledger.h"
#include "harness/stress/run.h"
#include "harness/stress/stress_consumer.h"
#include "harness/stress/stress_producer.h"

namespace perfring::stress {

// A ring, the thread that writes to it, and the consumer that drains it.
class ThreadedRing {
 public:
  virtual ~ThreadedRing() = default;
  virtual void start(const std::atomic<bool>& stop) = 0;
  // Returns true if there was an event.
  virtual bool drain() = 0;
  // Waits for the thread, drains the rest, and adds the results.
  virtual void end(PartReport& outcome) = 0;
};

template <class Base, class Consuming>
class ThreadedRingOf final : public ThreadedRing {
 public:
  explicit ThreadedRingOf(const Setting& setting)
      : ring_{setting}, producer_{ring_}, consumer_{ring_} {}

  void start(const std::atomic<bool>& stop) override {
    thread_ = start_thread([this, &stop] { producer_.work(stop); });
  }
  bool drain() override { return consumer_.drain(); }
  void end(PartReport& outcome) override {
    thread_.get();
    const oracle::Ledger& ledger = producer_.ledger();
    consumer_.finish();
    consumer_.settle(ledger.totals(), ledger.unreported());
    const Setting& setting = ring_.setting();
    if (const auto violation = consumer_.violation()) outcome.violate(*violation, setting);
    if (ledger.violation()) outcome.violate(*ledger.violation(), setting);
    outcome.attempted += ledger.totals().attempts();
    outcome.delivered += consumer_.received().delivered;
    outcome.lost += ledger.totals().lost;
  }

 private:
  StressRing ring_;
  StressProducer<Base> producer_;
  Consuming consumer_;
  std::future<void> thread_;  // last: its destructor waits for the thread
};

// One thread per ring writes to it. The calling thread drains all rings and never sleeps, so that
// only the rings order writer and consumer.
PartReport threads(const Run& run, std::unique_ptr<ThreadedRing> (*make_ring)(const Setting&));

template <class Base = kernel::HardwareCpu, class Consuming = StressConsumer<>>
PartReport threads(const Run& run) {
  return threads(run, [](const Setting& setting) {
    return std::unique_ptr<ThreadedRing>{new ThreadedRingOf<Base, Consuming>(setting)};
  });
}

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_THREADS_H_
