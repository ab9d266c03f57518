// A producer at work while the consumer waits and drains.

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "harness/live/testing.h"

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

  // The consumer may share the producer's CPU or not.
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
    const DeliveredEvent seen = see(event);
    if (seen.kind == DeliveredEvent::Kind::Lost) {
      lost += seen.count;
      expected += seen.count;
    } else {
      ASSERT_TRUE(seen.is_sample());
      ASSERT_EQ(seen.number(), expected);
      ++expected;
      ++delivered;
    }
  });
  producer.join();
  EXPECT_EQ(delivered + refused, attempts);
  EXPECT_LE(lost, refused);  // the last are not reported: no record follows them
  EXPECT_GT(delivered, 0u);
}

// With a producer that waits for room, nothing is missing.
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
    const DeliveredEvent seen = see(event);
    if (seen.kind == DeliveredEvent::Kind::Lost) return;  // of attempts that were repeated
    ASSERT_TRUE(seen.is_sample());
    ASSERT_EQ(seen.number(), delivered);
    ASSERT_EQ(seen.bytes.size(), raw_size(static_cast<std::size_t>(8 + delivered % 300)));
    ++delivered;
  });
  producer.join();
  EXPECT_EQ(delivered, kAttempts);
}

}  // namespace
}  // namespace perfring::live
