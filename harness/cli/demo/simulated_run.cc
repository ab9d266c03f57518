// The demonstration on the simulated kernel.

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "harness/cli/demo/live.h"
#include "harness/cli/demo/producer_thread.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/live/generator.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/payload.h"
#include "harness/oracle/received.h"
#include "harness/oracle/stream_checker.h"
#include "harness/program/affinity.h"
#include "harness/program/checked.h"
#include "harness/program/run_program.h"
#include "harness/rig/simulated_ring.h"
#include "harness/rig/watched_cpu.h"
#include "harness/script/script.h"
#include "perfring/os/fd.h"
#include "perfring/perfring.h"

namespace perfring::cli {
namespace {

// One CPU's ring in the simulated kernel, with the thread that writes to it and with its consumer.
class StandInRing {
 public:
  // The ring signals `eventfd` when the kernel would wake a waiter. Throws std::system_error if
  // there is no memory.
  StandInRing(std::uint32_t cpu, const LiveOptions& options, std::uint32_t watermark, int eventfd);
  ~StandInRing() { stopping_ = true; }
  StandInRing(const StandInRing&) = delete;
  StandInRing& operator=(const StandInRing&) = delete;

  // Start and stop the writer's thread. stop() rethrows the exception that ended it, if any.
  void start();
  void stop();
  // Writes one more record from the calling thread: its LOST reports the pending losses. Call after
  // stop().
  void flush();

  // Clears the kernel's readiness flag. Returns whether it was set.
  bool poll() { return kernel::perf_poll(simulated_.event()) != 0; }
  // Copies the control page and the data, with at least one unread record. Call after stop().
  std::string image();
  // Returns the number of bytes that were drained.
  std::uint64_t drain();
  // Checks the final counts. Call after stop(), when everything is drained.
  void settle() { checker_.settle(ledger_.totals(), ledger_.unreported()); }

  std::uint32_t cpu() const { return cpu_id_; }
  std::uint64_t wakeups = 0;
  const oracle::StreamChecker& checker() const { return checker_; }
  // Call after stop().
  const oracle::Ledger& ledger() const { return ledger_; }

 private:
  void write();
  int output();

  const std::uint32_t cpu_id_;
  const live::PayloadRange payload_;
  rig::SimulatedRing simulated_;
  kernel::EventfdWaiter waiter_;
  oracle::Ledger ledger_;
  oracle::StreamChecker checker_;
  Ring<> ring_;
  rig::LedgerCpu<> cpu_;
  std::vector<std::byte> buffer_;
  std::uint64_t sequence_ = 0;
  std::atomic<bool> stopping_{false};
  // The last member: its destructor waits for the thread, which uses the others.
  std::future<void> thread_;
};

script::Settings settings_of(const LiveOptions& options, std::uint32_t watermark) {
  script::Settings settings{.pages = options.pages};
  settings.watermark = watermark != 0;
  if (settings.watermark) settings.wakeup = watermark;
  return settings;
}

StandInRing::StandInRing(std::uint32_t cpu, const LiveOptions& options, std::uint32_t watermark,
                         int eventfd)
    : cpu_id_{cpu},
      // At least the size of a payload that identifies itself.
      payload_{std::max<std::uint32_t>(options.payload.min, oracle::kSelfDescribing),
               std::max<std::uint32_t>(options.payload.max, oracle::kSelfDescribing)},
      simulated_{settings_of(options, watermark), {.cpu = static_cast<int>(cpu), .ids = {cpu + 1}}},
      waiter_{simulated_.file(), eventfd},
      ledger_{simulated_.rb().data_size(), oracle::Ledger::Keep::Totals},
      checker_{simulated_.page(), simulated_.data(), cpu},
      ring_{*Ring<>::over(simulated_.page(), simulated_.data())},
      cpu_{ledger_},
      buffer_(payload_.max) {
  cpu_.id = static_cast<int>(cpu);
}

void StandInRing::start() {
  thread_ = std::async(std::launch::async, [this] { write(); });
}

void StandInRing::stop() {
  stopping_ = true;
  if (thread_.valid()) thread_.get();
}

int StandInRing::output() {
  const std::uint32_t span = payload_.max - payload_.min + 1;
  const auto length = payload_.min + static_cast<std::uint32_t>(sequence_ * 2654435761 % span);
  const oracle::Payload payload{sequence_++, cpu_id_, length};
  const std::span<std::byte> bytes = std::span{buffer_}.first(length);
  oracle::fill(bytes, payload);
  ledger_.begin_attempt(payload);
  const int rc = kernel::bpf_perf_event_output(cpu_, simulated_.map(), BPF_F_CURRENT_CPU, bytes);
  ledger_.end_attempt(rc);
  return rc;
}

// Pauses when the ring is full, as ProducerThread does, so that the consumer has time to catch up.
void StandInRing::write() {
  run_on(cpu_id_);
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (output() == -ENOSPC) std::this_thread::sleep_for(kPauseWhenFull);
  }
}

void StandInRing::flush() {
  if (ledger_.unreported() != 0) output();
}

std::string StandInRing::image() {
  const perf_event_mmap_page& page = simulated_.page();
  if (page.data_head == page.data_tail) output();
  return {reinterpret_cast<const char*>(&page), 4096 + simulated_.data().size()};
}

std::uint64_t StandInRing::drain() {
  const std::uint64_t before = checker_.received().bytes;
  checker_.begin_drain();
  ring_.for_each([this](const PerfEvent& event) { checker_.check_delivery(event); });
  checker_.end_drain();
  return checker_.received().bytes - before;
}

class SimulatedRun {
 public:
  explicit SimulatedRun(const LiveOptions& options)
      : options_{options},
        wakeup_{checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")},
        epoll_{checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")} {
    epoll_event event{.events = EPOLLIN, .data = {}};
    checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event), "epoll_ctl");
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
    std::string dump = options_.dump.empty() ? "" : rings_.front().image();
    drain();
    for (StandInRing& ring : rings_) ring.flush();
    drain();
    for (StandInRing& ring : rings_) ring.settle();
    LiveOutcome all = outcome(why, seconds, stop.load());
    all.dump = std::move(dump);
    return all;
  }

 private:
  // As on the live kernel: a poll clears the flag, and the kernel wakes only once for a full ring.
  // So every wait is short, and run() then drains every ring.
  void wait() {
    constexpr int kTimeoutMilliseconds = 10;
    epoll_event ready;
    if (::epoll_wait(epoll_.get(), &ready, 1, kTimeoutMilliseconds) == 1) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t ignored = ::read(wakeup_.get(), &count, sizeof(count));
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
                    .full = totals.lost,
                    .failed = totals.failed,
                    .last_error = 0};
      cpu.audit.delivered = received.delivered;
      cpu.audit.lost = received.lost;
      cpu.audit.malformed = received.malformed;
      cpu.audit.bytes = received.bytes;
      cpu.wakeups = ring.wakeups;
      cpu.records_per_second = static_cast<double>(received.delivered) / seconds;
      for (const auto& found : {ring.checker().violation(), ring.ledger().violation()}) {
        if (found) cpu.found.push_back(to_string(*found));
      }
      result.cpus.push_back(std::move(cpu));
    }
    return result;
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
    return std::unexpected("the simulated kernel cannot be set up: " + refusal(error));
  }
}

}  // namespace perfring::cli
