#ifndef HARNESS_STRESS_STRESS_PRODUCER_H_
#define HARNESS_STRESS_STRESS_PRODUCER_H_

#include <linux/perf_event.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/kernel/sample.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/payload.h"
#include "harness/rig/watched_cpu.h"
#include "harness/stress/run.h"

namespace perfring::stress {

// The end of each reservation, in memory that outlives the producer's process. Keeps more
// reservations than can be unpublished (N / 16).
struct FlightLog {
  struct Reservation {
    std::uint64_t end;       // a position that does not wrap
    std::uint64_t reported;  // losses reported by the LOSTs up to this position
  };
  static constexpr std::size_t kKept = 4096;

  std::atomic<std::uint64_t> count{0};
  std::atomic<bool> violated{false};  // the ledger is violated
  std::atomic<bool> dead{false};      // the producer has killed itself, or is about to
  Reservation kept[kKept];

  const Reservation& last(std::uint64_t n) const { return kept[(n - 1) % kKept]; }
  // Returns the number of the new reservation.
  std::uint64_t append(std::uint64_t end) {
    const std::uint64_t n = count.load(std::memory_order_relaxed);
    kept[n % kKept] = {end, n == 0 ? 0 : last(n).reported};
    count.store(n + 1, std::memory_order_release);
    return n + 1;
  }
  // The LOST of reservation `n`, which is not published yet, reports `lost` losses.
  void report(std::uint64_t n, std::uint64_t lost) {
    const std::uint64_t end = count.load(std::memory_order_relaxed);
    for (; n <= end; ++n) kept[(n - 1) % kKept].reported += lost;
  }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The CPU that writes to one ring, on a Base that defines the memory accesses. Between any two
// accesses it may be disturbed: by interrupts that also output, by pauses, by other threads.
//
// Threads: used by one thread. Others may read the ledger after they have joined that thread.
template <class Base = kernel::HardwareCpu>
class StressProducer : public rig::LedgerCpu<Base> {
 public:
  explicit StressProducer(const StressRing& ring, FlightLog* log = nullptr)
      : rig::LedgerCpu<Base>{ledger_},
        setting_{ring.setting()},
        event_{ring.file()},
        page_{ring.page()},
        log_{log},
        random_{setting_.seed},
        ledger_{ring_size(setting_), oracle::Ledger::Keep::Totals, setting_.ring.start,
                setting_.ring.word == kernel::Word::k64 ? 64U : 32U} {}

  // Outputs one record of the task, with its interrupts. Returns 0 or -ENOSPC.
  int output() {
    const unsigned level = depth_++;
    const oracle::Payload payload{next_[level]++, setting_.first_stream + level, draw_length()};
    std::vector<std::byte>& bytes = bytes_[level];  // the outer levels' buffers are in use
    bytes.resize(payload.length);
    oracle::fill(bytes, payload);
    ledger_.begin_attempt(payload);
    kernel::perf_sample_data data;
    kernel::perf_sample_save_raw_data(data, *event_, bytes);
    const int rc = kernel::perf_event_output(*this, *event_, data);
    ledger_.end_attempt(rc);
    if (log_ != nullptr && ledger_.violation()) log_->violated = true;
    --depth_;
    return rc;
  }

  // Outputs until `stop` is set.
  void work(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) {
      if (output() == -ENOSPC && setting_.patient) ::sched_yield();
    }
  }

  // Returns the number of bytes that the consumer has not released.
  std::uint64_t unread() const {
    return (ledger_.position() - data_tail()) & (2 * ring_size(setting_) - 1);
  }
  const oracle::Ledger& ledger() const { return ledger_; }
  Random& random() { return random_; }

  void step() {
    Base::step();
    if (--steps_ != 0) return;
    steps_ = 1 + static_cast<unsigned>(random_() % (2 * setting_.calm));
    disturb();
  }
  void on_reserve(const kernel::perf_buffer& rb, std::uint64_t position, std::size_t size) {
    rig::LedgerCpu<Base>::on_reserve(rb, position, size);
    if (log_ != nullptr) own_[depth_ - 1] = log_->append(ledger_.position());
  }
  void on_lost_record(const kernel::perf_buffer& rb, std::uint64_t lost) {
    rig::LedgerCpu<Base>::on_lost_record(rb, lost);
    if (log_ != nullptr) log_->report(own_[depth_ - 1], lost);
  }

 private:
  std::uint64_t data_tail() const { return __atomic_load_n(&page_.data_tail, __ATOMIC_RELAXED); }

  // Draws small lengths, any length, and the largest, which leaves room for no other record.
  std::uint32_t draw_length() {
    constexpr std::uint32_t kMin = oracle::kSelfDescribing;
    const std::uint32_t max = std::max(setting_.payload_max, kMin);
    const auto kind = random_() % 8;
    if (kind == 0) return max;
    const std::uint32_t limit = kind < 5 ? std::min(max, 4 * kMin) : max;
    return kMin + static_cast<std::uint32_t>(random_() % (limit - kMin + 1));
  }

  void disturb() {
    const auto what = random_() % 16;
    if (what < 9) {
      if (depth_ < setting_.levels) output();
    } else if (what < 14) {
      for (auto i = random_() % 512; i != 0; --i) asm volatile("");
    } else {
      ::sched_yield();
    }
  }

  const Setting setting_;
  const kernel::perf_file event_;
  const perf_event_mmap_page& page_;
  FlightLog* const log_;
  Random random_;
  oracle::Ledger ledger_;
  std::array<std::uint64_t, kLevelsMax> own_{};  // each level's last reservation in the log
  unsigned steps_ = 1;
  unsigned depth_ = 0;
  std::array<std::uint64_t, kLevelsMax> next_{};
  std::array<std::vector<std::byte>, kLevelsMax> bytes_;
};

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_STRESS_PRODUCER_H_
