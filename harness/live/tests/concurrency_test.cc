// A producer that writes while the consumer waits and drains.

#include <linux/bpf.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>

#include "harness/live/bpf/late.h"
#include "harness/live/bpf/stall_object.h"
#include "harness/live/bpf_object.h"
#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "harness/program/time_namespace.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"

namespace perfring::live {
namespace {

class ConcurrencyTest : public LiveTest {
 protected:
  // Drains `buffer` on each report of epoll, and at least every 10 ms, until the producer is done
  // and the ring is empty.
  template <class F>
  void consume(PerfEventArrayBuffer& buffer, const std::atomic<bool>& done, F f) {
    const os::Fd epoll{::epoll_create1(EPOLL_CLOEXEC)};
    epoll_event event{.events = EPOLLIN, .data{}};
    ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, buffer.fd(), &event), 0);
    for (;;) {
      const bool last = done.load(std::memory_order_acquire);
      buffer.for_each(f);
      if (last) return;
      ::epoll_wait(epoll.get(), &event, 1, 10);
    }
  }

  // The consumer may or may not share the producer's CPU.
  std::uint32_t producer_cpu() const { return other_cpu().value_or(cpu()); }
};

constexpr std::uint64_t kAttempts = 50000;

// Delivered records and reported losses add up to the attempts, in order.
TEST_F(ConcurrencyTest, EveryRecordIsDeliveredInOrderOrLost) {
  auto buffer = must(array().open(producer_cpu(), 1));
  std::atomic<bool> done{false};
  std::uint64_t attempts = 0;
  std::uint64_t refused = 0;
  std::thread producer([&] {
    while (attempts < kAttempts) {
      const auto count = static_cast<std::uint32_t>(attempts % 97 + 1);
      refused += emitter()
                     .emit_many(producer_cpu(), static_cast<std::size_t>(8 + attempts % 90), count,
                                attempts)
                     .refused;
      attempts += count;
    }
    done.store(true, std::memory_order_release);
  });
  std::uint64_t expected = 0;  // the next record's number
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
  consume(buffer, done, [&](const PerfEvent& event) {
    const DeliveredEvent copied = copy_event(event);
    if (copied.kind == DeliveredEvent::Kind::Lost) {
      lost += copied.count;
      expected += copied.count;
    } else {
      ASSERT_TRUE(copied.is_sample());
      ASSERT_EQ(copied.number(), expected);
      ++expected;
      ++delivered;
    }
  });
  producer.join();
  EXPECT_EQ(delivered + refused, attempts);
  EXPECT_LE(lost, refused);  // the last losses are not reported: no record follows
  EXPECT_GT(delivered, 0u);
}

// If the producer waits for room, nothing is missing.
TEST_F(ConcurrencyTest, AProducerThatWaitsLosesNothing) {
  auto buffer = must(array().open(producer_cpu()));
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (std::uint64_t next = 0; next < kAttempts; ++next) {
      while (emitter()
                 .emit_many(producer_cpu(), static_cast<std::size_t>(8 + next % 300), 1, next)
                 .accepted == 0) {
        std::this_thread::yield();
      }
    }
    done.store(true, std::memory_order_release);
  });
  std::uint64_t delivered = 0;
  consume(buffer, done, [&](const PerfEvent& event) {
    const DeliveredEvent copied = copy_event(event);
    if (copied.kind == DeliveredEvent::Kind::Lost)
      return;  // the producer repeats the lost attempts
    ASSERT_TRUE(copied.is_sample());
    ASSERT_EQ(copied.number(), delivered);
    ASSERT_EQ(copied.bytes.size(), raw_size(static_cast<std::size_t>(8 + delivered % 300)));
    ++delivered;
  });
  producer.join();
  EXPECT_EQ(delivered, kAttempts);
}

// RingSet's flushes against a late writer (W12).

using namespace std::chrono_literals;
using Clock = RingSet::Clock;

constexpr std::chrono::nanoseconds kStall = 4ms;

class FlushTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!other_cpu()) GTEST_SKIP() << "one CPU";
    auto object = must(BpfObject::open(stall_object(), "stall"));
    if (const auto loaded = object.load(); !loaded) {
      GTEST_SKIP() << "no program can spin here: " << loaded.error();
    }
    program_ = must(object.program("stall"));
    map_ = must(object.map("events"));
    const os::Fd shared = must(object.map("stalled"));
    mapping_.emplace(must(os::Mapping::map(shared.get(), sizeof(stall))));
    on_cpu_.emplace(cpu());
  }

  std::uint64_t& started() { return *reinterpret_cast<std::uint64_t*>(mapping_->bytes().data()); }

  struct Trials {
    int count = 0;
    int found = 0;
  };

  // Flushes `most` times, each 0.2 ms after the writer has read its clock, and counts the flushes
  // that delivered its record. Repeats flushes that were too late to show anything, for 20 seconds.
  Trials flush(Flush what, int most) {
    const auto array = must(PerfEventArray::from_fd(map_.get()));
    RingSetOptions options;
    options.page_count = 1;
    RingSet set = must(RingSet::open(array, options));
    Trials trials;
    const std::int64_t offset = monotonic_offset();
    const auto end = Clock::now() + 20s;
    while (trials.count != most && Clock::now() < end) {
      __atomic_store_n(&started(), 0, __ATOMIC_RELEASE);
      std::thread writer{[&] {
        // Bound to another CPU, the thread would wait for the program without yielding its own CPU.
        const OnCpu bound{*other_cpu()};
        std::array<std::uint64_t, STALL_ARGUMENTS> arguments{};
        arguments[STALL_INDEX] = BPF_F_CURRENT_CPU;
        arguments[STALL_NS] = static_cast<std::uint64_t>(kStall.count());
        EXPECT_EQ(test_run(program_.get(), *other_cpu(), arguments), 0);
      }};
      std::uint64_t key = 0;
      while ((key = __atomic_load_n(&started(), __ATOMIC_ACQUIRE)) == 0) {
      }
      const auto kernel_ns = static_cast<std::int64_t>(key);
      const auto clock = Clock::time_point{std::chrono::nanoseconds{kernel_ns + offset}};
      while (Clock::now() < clock + 200us) {
      }
      const bool in_time = Clock::now() < clock + 3500us;
      int events = 0;
      EXPECT_EQ(must(set.flush(what, [&](std::uint32_t, const PerfEvent&) { ++events; })),
                DrainEnd::Drained);
      // A flush of visible records ends while the writer still spins.
      const bool is_conclusive =
          in_time && (what == Flush::Complete || Clock::now() < clock + 3900us);
      writer.join();
      set.drain([](std::uint32_t, const PerfEvent&) {});
      if (!is_conclusive) continue;
      ++trials.count;
      trials.found += events;
    }
    return trials;
  }

  os::Fd program_;
  os::Fd map_;
  std::optional<os::Mapping> mapping_;
  std::optional<OnCpu> on_cpu_;
};

// W12
TEST_F(FlushTest, ACompleteFlushWaitsForAWriterThatIsLate) {
  const Trials trials = flush(Flush::Complete, 24);
  EXPECT_EQ(trials.found, trials.count);
  if (trials.count == 0) GTEST_SKIP() << "this CPU was always late";
}

// W12
TEST_F(FlushTest, AVisibleFlushDoesNotWaitForALateWriter) {
  const Trials trials = flush(Flush::Visible, 12);
  EXPECT_EQ(trials.found, 0);
  if (trials.count == 0) GTEST_SKIP() << "this CPU was always late";
}

}  // namespace
}  // namespace perfring::live
