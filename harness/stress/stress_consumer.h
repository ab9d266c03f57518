#ifndef HARNESS_STRESS_STRESS_CONSUMER_H_
#define HARNESS_STRESS_STRESS_CONSUMER_H_

#include <linux/perf_event.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "harness/oracle/checker.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/received.h"
#include "harness/oracle/stream_checker.h"
#include "harness/stress/run.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/ring_over_cursor.h"

namespace perfring::stress {

// Consumes one ring with lib's Ring, or with a faulty consumer that has the same interface. It
// drains in every way there is, sometimes with a Cursor on the same ring, sometimes yields in the
// callback, and checks every event.
template <class R = Ring<>>
class StressConsumer : private oracle::FirstViolation {
 public:
  explicit StressConsumer(const StressRing& ring)
      : page_{ring.page()},
        ring_{*R::over(ring.page(), ring.data())},
        cursor_{*testing::CursorConsumer<R>::over(ring.page(), ring.data())},
        size_{ring.data().size()},
        random_{~ring.setting().seed},
        checker_{ring.page(), ring.data(), ring.setting().first_stream, ring.setting().levels} {}

  // Runs one drain, which takes everything there is unless it breaks off. Returns true if there was
  // an event.
  bool drain() {
    begin_drain();
    switch (random_() % 8) {
      case 0:
        drain_some(ring_, 1 + random_() % 4);
        break;
      case 1:
        drain_throwing(1 + random_() % 16);
        break;
      case 2:
        drain_folding();
        break;
      case 3:
      case 4:
        drain_some(cursor_, 1 + random_() % 64);
        break;
      default:
        drain_all();
    }
    checker_.end_drain();
    return events_ != 0;
  }

  // After a wakeup: drains until the ring is empty, although a single drain may break off.
  void drain_in_parts() {
    do {
      drain();
    } while (over_ && !violation() && ring_.readable());
  }

  // Drains everything that is in the ring now.
  bool drain_to_the_end() {
    begin_drain();
    drain_all();
    checker_.end_drain();
    return events_ != 0;
  }

  // Takes the rest after the writer has ended, and checks that the ring is then empty in every
  // sense. Stops at the checker's first objection, because a faulty consumer may find more events
  // on every call.
  void finish() {
    for (std::size_t i = 0; ring_.readable(); ++i) {
      if (checker_.violation()) return;
      if (i > size_ / 8) return violate(oracle::Invariant::bounded, "the final drain does not end");
      drain();
      if (!over_ && ring_.readable()) {
        violate(oracle::Invariant::bounded, "a drain of an idle ring left it readable");
      }
    }
    if (drain_to_the_end()) violate(oracle::Invariant::once, "an empty ring delivered an event");
    if (static_cast<Position>(page_.data_head) != static_cast<Position>(page_.data_tail)) {
      violate(oracle::Invariant::tail_honest, "the ring is empty, but data_tail is not data_head");
    }
  }

  // See StreamChecker.
  void settle(const oracle::Totals& totals, std::uint64_t unreported) {
    checker_.settle(totals, unreported);
  }
  const oracle::Received& received() const { return checker_.received(); }
  std::optional<oracle::Violation> violation() const {
    return checker_.violation() ? checker_.violation() : FirstViolation::violation();
  }
  using FirstViolation::violate;

 private:
  struct Enough {};

  void begin_drain() {
    events_ = 0;
    over_ = false;
    checker_.begin_drain();
  }
  void handle_event(const PerfEvent& event) {
    ++events_;
    if (over_) violate(oracle::Invariant::once, "an event was delivered after the drain's last");
    if (random_() % 32 == 0 && !checker_.violation()) ::sched_yield();
    checker_.check_delivery(event);
    const auto& violation = checker_.violation();
    if (violation && violation->invariant != oracle::Invariant::in_ring) read(event);
  }

  // The checker has stopped looking at the bytes, but ThreadSanitizer needs the reads.
  void read(const PerfEvent& event) {
    const auto* sample = std::get_if<Sample>(&event);
    if (sample == nullptr) return;
    for (const Bytes bytes : {sample->head, sample->tail}) {
      for (const std::byte byte : bytes) read_ = byte;
    }
  }

  void drain_all() {
    ring_.for_each([this](const PerfEvent& event) { handle_event(event); });
  }
  template <class Consuming>
  void drain_some(Consuming& consumer, std::uint64_t count) {
    static_cast<void>(consumer.try_fold(
        count,
        [this](std::uint64_t left, const PerfEvent& event) -> ControlFlow<Unit, std::uint64_t> {
          handle_event(event);
          over_ = left == 1;
          if (over_) return Break{};
          return Continue{left - 1};
        }));
  }
  void drain_throwing(std::uint64_t count) {
    try {
      ring_.for_each([&](const PerfEvent& event) {
        handle_event(event);
        over_ = --count == 0;
        if (over_) throw Enough{};
      });
    } catch (const Enough&) {
    }
  }
  void drain_folding() {
    const auto count =
        ring_.fold(std::uint64_t{0}, [this](std::uint64_t count_so_far, const PerfEvent& e) {
          handle_event(e);
          return count_so_far + 1;
        });
    if (count != events_) violate(oracle::Invariant::once, "fold lost count");
  }
  const perf_event_mmap_page& page_;
  R ring_;
  testing::CursorConsumer<R> cursor_;
  const std::size_t size_;
  Random random_;
  oracle::StreamChecker checker_;
  std::uint64_t events_ = 0;  // in this drain
  bool over_ = false;         // the drain has broken off
  volatile std::byte read_{};
};

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_STRESS_CONSUMER_H_
