#include "harness/cli/live.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <system_error>
#include <utility>

#include "harness/cli/stand_in_ring.h"
#include "perfring/os/fd.h"

namespace perfring::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class SimulatedRun {
 public:
  explicit SimulatedRun(const LiveOptions& options)
      : options_{options},
        wakeup_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
        epoll_{::epoll_create1(EPOLL_CLOEXEC)} {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event) != 0) {
      throw std::system_error{errno, std::generic_category(), "epoll_ctl"};
    }
    const std::size_t ring_size = options.pages * 4096;
    const auto watermark =
        options.watermark >= 0 ? static_cast<std::size_t>(options.watermark) : ring_size / 4;
    for (const std::uint32_t cpu : options.cpus) {
      rings_.emplace_back(cpu, options, static_cast<std::uint32_t>(watermark), wakeup_.get());
    }
    fill_.resize(rings_.size());
  }

  LiveOutcome run(const std::string& why, const std::atomic<bool>& stop,
                  const std::function<void(const LiveProgress&)>& on_progress) {
    const Clock::time_point start = Clock::now();
    for (StandInRing& ring : rings_) ring.start();
    while (!stop.load() && seconds_since(start) < options_.seconds) {
      wait();
      drain();
      report(seconds_since(start), on_progress);
    }
    for (StandInRing& ring : rings_) ring.stop();
    const double seconds = seconds_since(start);
    drain();
    for (StandInRing& ring : rings_) ring.flush();
    drain();
    for (StandInRing& ring : rings_) ring.settle();
    return outcome(why, seconds, stop.load());
  }

 private:
  // As on the live kernel: the flag is swapped by a poll, a full ring is announced once, so every
  // wait ends soon and every ring is drained after it.
  void wait() {
    constexpr int kTimeoutMilliseconds = 10;
    epoll_event ready;
    if (::epoll_wait(epoll_.get(), &ready, 1, kTimeoutMilliseconds) == 1) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wakeup_.get(), &count, sizeof(count));
    }
    for (StandInRing& ring : rings_) ring.wakeups += ring.poll() ? 1 : 0;
  }

  void drain() {
    for (std::size_t i = 0; i < rings_.size(); ++i) {
      const double part =
          static_cast<double>(rings_[i].drain()) / static_cast<double>(options_.pages * 4096);
      fill_[i] = std::max(fill_[i], part);
    }
  }

  void report(double now, const std::function<void(const LiveProgress&)>& on_progress) {
    constexpr double kInterval = 0.5;
    const double interval = now - reported_at_;
    if (interval < kInterval) return;
    std::uint64_t delivered = 0;
    std::uint64_t lost = 0;
    for (const StandInRing& ring : rings_) {
      delivered += ring.checker().received().delivered;
      lost += ring.checker().received().lost;
    }
    const auto rate = [interval](std::uint64_t more) {
      return static_cast<double>(more) / interval;
    };
    on_progress({.seconds = now,
                 .events_per_second = rate(delivered - std::exchange(delivered_, delivered)),
                 .lost_per_second = rate(lost - std::exchange(lost_, lost)),
                 .fill = std::exchange(fill_, std::vector<double>(rings_.size()))});
    reported_at_ = now;
  }

  LiveOutcome outcome(const std::string& why, double seconds, bool interrupted) const {
    LiveOutcome result{
        .cpus = {}, .seconds = seconds, .interrupted = interrupted, .simulated_because = why};
    for (const StandInRing& ring : rings_) {
      const oracle::Totals& totals = ring.ledger().totals();
      const oracle::Received& received = ring.checker().received();
      LiveCpuOutcome cpu{};
      cpu.cpu = ring.cpu();
      cpu.output = {.attempted = totals.attempts(),
                    .accepted = totals.accepted,
                    .full = totals.refused,
                    .failed = totals.failed,
                    .last_error = 0};
      cpu.audit.delivered = received.delivered;
      cpu.audit.lost = received.lost;
      cpu.audit.malformed = received.malformed;
      cpu.audit.bytes = received.bytes;
      cpu.wakeups = ring.wakeups;
      cpu.records_per_second = static_cast<double>(received.delivered) / seconds;
      for (const auto& found : {ring.checker().violation(), ring.ledger().violation()}) {
        if (found) cpu.found.push_back(described(*found));
      }
      result.cpus.push_back(std::move(cpu));
    }
    return result;
  }

  static std::string described(const oracle::Violation& violation) {
    return std::string{to_string(violation.invariant)} + ": " + violation.message;
  }

  const LiveOptions& options_;
  os::Fd wakeup_;
  os::Fd epoll_;
  std::deque<StandInRing> rings_;
  std::vector<double> fill_;
  double reported_at_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace

std::expected<LiveOutcome, std::string> run_simulated(
    const LiveOptions& options, const std::string& why, const std::atomic<bool>& stop,
    const std::function<void(const LiveProgress&)>& on_progress) {
  try {
    return SimulatedRun{options}.run(why, stop, on_progress);
  } catch (const std::system_error& error) {
    return std::unexpected(std::string{"the simulated kernel cannot be set up: "} + error.what());
  }
}

}  // namespace perfring::cli
