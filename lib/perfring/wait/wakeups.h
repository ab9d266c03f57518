#ifndef PERFRING_WAIT_WAKEUPS_H_
#define PERFRING_WAIT_WAKEUPS_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// WakeupChoice: the cheapest way for a consumer to learn within a latency L that there is something
// to read. A wakeup costs the reader about 34 us of CPU and the writer 6 to 17 us; a timer tick
// costs the reader 16 to 19 us and the writer nothing (W27, in the project's
// harness/RINGS_FACTS.md). So a wakeup for each record is cheapest up to one record per L, and a
// timer with period L is cheapest above that. Whether to switch is decided over a time of 16 L. The
// timer is abandoned at half the rate at which it was adopted, so that a steady rate never causes
// two switches.
//
// Units: a latency is any duration. 0 or less means a wakeup for each record, always. More than an
// hour counts as an hour. Times are std::chrono::steady_clock times. A time before the clock's
// epoch counts as the epoch, and one more than a century later as that limit. If time goes back, no
// time passes.
// Threads: one at a time.
// Errors: none; nothing here throws, allocates or makes a system call.

#include <chrono>
#include <cstdint>

namespace perfring {

// When the kernel wakes those who wait for records.
enum class Wakeups : std::uint8_t {
  EachRecord,
  None,  // only for a ring that is half full
};

class WakeupChoice {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kWindow = 16;  // latencies

  explicit WakeupChoice(std::chrono::nanoseconds latency) noexcept
      : latency_{latency < kLatencyMost ? latency : kLatencyMost} {}

  Wakeups wakeups() const noexcept { return wakeups_; }
  std::chrono::nanoseconds latency() const noexcept { return latency_; }

  // Counts the `events` that a read of all rings, begun at time `at`, has found. Returns wakeups().
  Wakeups looked(std::uint64_t events, Clock::time_point at) noexcept {
    if (latency_ <= std::chrono::nanoseconds{0}) return wakeups_;
    // Neither sums nor differences may overflow.
    if (at < kEarliest) at = kEarliest;
    if (at > kLatest) at = kLatest;
    if (timer_looks_ != 0) --timer_looks_;
    const Wakeups wakeups = choose(events, at);
    due_ = wakeups == Wakeups::None || timer_looks_ != 0 ? at + latency_ : Clock::time_point::max();
    return wakeups;
  }
  // When to read the rings again, whether or not there was a wakeup.
  Clock::time_point due() const noexcept { return due_; }

 private:
  static constexpr std::chrono::nanoseconds kLatencyMost = std::chrono::hours{1};
  // The looks after a switch to EachRecord that still set a timer.
  static constexpr unsigned kTimerLooksAfterSwitch = 2;
  static constexpr Clock::time_point kEarliest{};
  static constexpr Clock::time_point kLatest{std::chrono::hours{24 * 36525}};

  Wakeups choose(std::uint64_t events, Clock::time_point at) noexcept {
    if (!began_) begin(at);
    events_ += events;
    // Signed, because time may go back.
    const std::chrono::nanoseconds window = latency_ * std::int64_t{kWindow};
    const bool ended = at - since_ >= window;
    if (wakeups_ == Wakeups::EachRecord) {
      if (!ended && events_ > kWindow) return become(Wakeups::None, at);
      if (ended) begin(at, events);
    } else if (ended) {
      if (is_below_half(at - since_)) return become(Wakeups::EachRecord, at);
      begin(at);
    }
    return wakeups_;
  }

  Wakeups become(Wakeups wakeups, Clock::time_point at) noexcept {
    begin(at);
    timer_looks_ = wakeups == Wakeups::EachRecord ? kTimerLooksAfterSwitch : 0;
    return wakeups_ = wakeups;
  }
  // Returns true if there was less than one event in each 2 latencies.
  bool is_below_half(Clock::duration elapsed) const noexcept {
    const auto half = 2 * latency_;
    const auto least = static_cast<std::uint64_t>(elapsed / half);
    return events_ < least || (events_ == least && elapsed % half != Clock::duration{0});
  }
  void begin(Clock::time_point at, std::uint64_t events = 0) noexcept {
    began_ = true;
    since_ = at;
    events_ = events;
  }

  std::chrono::nanoseconds latency_;
  Wakeups wakeups_ = Wakeups::EachRecord;
  bool began_ = false;
  Clock::time_point since_{};  // when the window began
  std::uint64_t events_ = 0;   // in the window
  unsigned timer_looks_ = 0;   // of kTimerLooksAfterSwitch, those to come
  Clock::time_point due_ = Clock::time_point::max();
};

}  // namespace perfring

#endif
#endif  // PERFRING_WAIT_WAKEUPS_H_
