#include "harness/cli/demo/live.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>

#include "harness/cli/demo/producer_thread.h"
#include "harness/cli/record/clocks.h"
#include "harness/live/live_kernel.h"
#include "harness/oracle/invariant.h"
#include "harness/program/affinity.h"
#include "harness/program/numbers.h"
#include "harness/program/time_namespace.h"
#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/os/fd.h"
#include "perfring/os/syscalls.h"
#include "perfring/perfring.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/wait/waiter.h"

namespace perfring::cli {
namespace {

constexpr std::chrono::milliseconds kLongestWait{10};

// One CPU's ring, and the checks of its records.
struct Reader {
  std::uint32_t cpu;
  std::optional<PerfEventArrayBuffer> buffer;  // nullopt: the RingSet has the ring
  live::Audit audit;
  std::uint64_t wakeups = 0;
  std::uint64_t largest_drain = 0;  // in bytes, since the last progress line
};

class LiveRun {
 public:
  LiveRun(const LiveOptions& options, live::Generator& generator)
      : options_{options},
        ring_size_{options.pages * os::page_size()},
        generator_{generator},
        epoll_{::epoll_create1(EPOLL_CLOEXEC)},
        epoll_error_{errno, std::generic_category()} {}

  std::expected<void, std::string> open(const std::vector<std::uint32_t>& cpus) {
    if (epoll_.get() < 0) return std::unexpected("epoll_create1 failed: " + epoll_error_.message());
    auto array = PerfEventArray::from_fd(generator_.events_fd());
    if (!array) return std::unexpected(array.error().explain());
    if (options_.order != LiveOrder::Each) return open_set(*array, cpus);
    for (const std::uint32_t cpu : cpus) {
      auto buffer =
          array->open(cpu, {.page_count = options_.pages, .wakeup_watermark = watermark()});
      if (!buffer) return std::unexpected(buffer.error().explain());
      readers_.push_back({cpu, *std::move(buffer), live::Audit{cpu, options_.payload}});
      epoll_event event{.events = EPOLLIN, .data = {.ptr = &readers_.back()}};
      if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, readers_.back().buffer->fd(), &event) != 0) {
        return std::unexpected("epoll_ctl failed: " + std::generic_category().message(errno));
      }
    }
    return {};
  }

  std::expected<LiveOutcome, std::string> run(
      const std::atomic<bool>& stop, const std::function<void(const LiveProgress&)>& on_progress) {
    std::deque<ProducerThread> producers;
    keep_off_producers();
    const Clock::time_point start = Clock::now();
    for (const Reader& reader : readers_) {
      producers.emplace_back(generator_, reader.cpu, options_.payload);
    }
    while (!stop.load() && seconds_since(start) < options_.seconds) {
      wait();
      drain();
      report(start, on_progress);
      if (std::ranges::any_of(producers, &ProducerThread::has_failed)) break;
    }
    for (ProducerThread& producer : producers) producer.stop();
    const double seconds = seconds_since(start);
    for (const ProducerThread& producer : producers) {
      if (producer.has_failed()) return std::unexpected(producer.failure());
    }
    std::string dump;
    if (!options_.dump.empty()) {
      auto image = image_of(readers_.front());
      if (!image) return std::unexpected(image.error());
      dump = *std::move(image);
    }
    if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
    LiveOutcome all = outcome(seconds, stop.load());
    all.dump = std::move(dump);
    return all;
  }

 private:
  std::uint32_t watermark() const {
    if (options_.watermark >= 0) return static_cast<std::uint32_t>(options_.watermark);
    return static_cast<std::uint32_t>(ring_size_ / 4);
  }

  std::expected<void, std::string> open_set(const PerfEventArray& array,
                                            const std::vector<std::uint32_t>& cpus) {
    RingSetOptions of_set;
    of_set.page_count = options_.pages;
    of_set.wakeup_watermark = watermark();
    of_set.longest_wait = kLongestWait;
    of_set.timed = options_.order == LiveOrder::Time;
    of_set.cpus = cpus;
    auto set = RingSet::open(array, of_set);
    if (!set) return std::unexpected(set.error().explain());
    set_.emplace(*std::move(set));
    for (const std::uint32_t cpu : cpus) {
      readers_.push_back({cpu, std::nullopt, live::Audit{cpu, options_.payload}});
    }
    return {};
  }

  // Moves the draining thread to the CPUs that generate nothing, if there are any.
  void keep_off_producers() const {
    std::vector<std::uint32_t> idle = usable_cpus();
    std::erase_if(idle, [&](std::uint32_t cpu) {
      return std::ranges::find(readers_, cpu, &Reader::cpu) != readers_.end();
    });
    if (!idle.empty()) run_on(idle);
  }

  // Readiness is edge-triggered: any poll clears it. And the kernel wakes nobody for records below
  // the watermark, or after a full ring. So every wait is short, and run() then drains every ring
  // even if epoll reported nothing.
  void wait() {
    if (set_) {
      const bool reported = set_->wait() == Woken::Report;
      for (Reader& reader : readers_) reader.wakeups += reported ? 1 : 0;
      return;
    }
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(kLongestWait.count()));
    for (int i = 0; i < count; ++i) {
      static_cast<Reader*>(events[static_cast<std::size_t>(i)].data.ptr)->wakeups += 1;
    }
  }

  void drain() {
    if (set_) return drain_set();
    for (Reader& reader : readers_) {
      const std::uint64_t before = reader.audit.counts().bytes;
      reader.buffer->for_each([&](const PerfEvent& event) { reader.audit.check(event); });
      reader.largest_drain = std::max(reader.largest_drain, reader.audit.counts().bytes - before);
    }
  }

  Reader& reader_of(std::uint32_t cpu) { return *std::ranges::find(readers_, cpu, &Reader::cpu); }
  void drain_set() {
    std::vector<std::uint64_t> before;
    for (const Reader& reader : readers_) before.push_back(reader.audit.counts().bytes);
    if (options_.order == LiveOrder::Time) {
      set_->merge(EventTime{}, {}, [this](std::uint32_t cpu, const Ordered& each) {
        reader_of(cpu).audit.check(each.event);
      });
    } else {
      set_->drain_fullest({}, [this](std::uint32_t cpu, const PerfEvent& event) {
        reader_of(cpu).audit.check(event);
      });
    }
    for (std::size_t i = 0; i != readers_.size(); ++i) {
      Reader& reader = readers_[i];
      reader.largest_drain =
          std::max(reader.largest_drain, reader.audit.counts().bytes - before[i]);
    }
  }

  // Drains all records, also those that a merge would hold back.
  void drain_all() {
    if (options_.order != LiveOrder::Time) return drain();
    static_cast<void>(
        set_->flush(Flush::Visible, EventTime{}, [this](std::uint32_t cpu, const Ordered& each) {
          reader_of(cpu).audit.check(each.event);
        }));
  }

  void report(Clock::time_point start,
              const std::function<void(const LiveProgress&)>& on_progress) {
    constexpr double kInterval = 0.5;
    const double now = seconds_since(start);
    const double interval = now - reported_at_;
    if (interval < kInterval) return;
    LiveProgress progress{.seconds = now, .events_per_second = 0, .lost_per_second = 0, .fill = {}};
    std::uint64_t delivered = 0;
    std::uint64_t lost = 0;
    for (Reader& reader : readers_) {
      delivered += reader.audit.counts().delivered;
      lost += reader.audit.counts().lost;
      // One round of RingSet may take more bytes than the ring contained at its beginning (C3).
      const std::uint64_t largest = std::exchange(reader.largest_drain, 0);
      progress.fill.push_back(
          std::min(1.0, static_cast<double>(largest) / static_cast<double>(ring_size_)));
    }
    progress.events_per_second = static_cast<double>(delivered - reported_delivered_) / interval;
    progress.lost_per_second = static_cast<double>(lost - reported_lost_) / interval;
    reported_at_ = now;
    reported_delivered_ = delivered;
    reported_lost_ = lost;
    on_progress(progress);
  }

  // The kernel reports a loss only before the next record. One more record, into an empty ring,
  // makes it report the pending losses.
  std::expected<void, std::string> flush() {
    drain_all();
    for (Reader& reader : readers_) {
      const auto run = generator_.run(reader.cpu, 1, live::Generator::IfFull::Stop);
      if (!run) return std::unexpected(describe_failure(reader.cpu, run.error()));
    }
    drain_all();
    return {};
  }

  // Copies the control page and the data of a ring, with at least one unread record, from a second
  // mapping of the same memory.
  std::expected<std::string, std::string> image_of(const Reader& reader) {
    if (!reader.buffer->readable()) {
      const auto run = generator_.run(reader.cpu, 1, live::Generator::IfFull::Stop);
      if (!run) return std::unexpected(describe_failure(reader.cpu, run.error()));
    }
    const std::size_t size = os::page_size() + ring_size_;
    void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, reader.buffer->fd(), 0);
    if (mapped == MAP_FAILED) {
      return std::unexpected("--dump: a second mapping of the ring failed: " +
                             std::generic_category().message(errno));
    }
    std::string image(static_cast<const char*>(mapped), size);
    ::munmap(mapped, size);
    return image;
  }

  LiveOutcome outcome(double seconds, bool interrupted) const {
    LiveOutcome result{.cpus = {},
                       .seconds = seconds,
                       .interrupted = interrupted,
                       .simulated_because = {},
                       .merge = {}};
    for (const Reader& reader : readers_) {
      const live::AuditCounts& audit = reader.audit.counts();
      result.cpus.push_back({reader.cpu,
                             generator_.counts(reader.cpu),
                             audit,
                             reader.wakeups,
                             static_cast<double>(audit.delivered) / seconds,
                             {}});
    }
    if (options_.order == LiveOrder::Time) {
      const MergeCounts counts = set_->merge_counts();
      result.merge = {.late = counts.late,
                      .worst_late = counts.worst_late,
                      .longest_delay = counts.longest_delay,
                      .slack = set_->merge_slack(),
                      .ahead = counts.ahead,
                      .note = note_on_clock(counts.ahead, monotonic_offset())};
    }
    return result;
  }

  const LiveOptions& options_;
  const std::size_t ring_size_;
  live::Generator& generator_;
  os::Fd epoll_;
  const std::error_code epoll_error_;  // valid if epoll_create1() failed
  std::deque<Reader> readers_;         // a deque, because epoll has their addresses
  std::optional<RingSet> set_;         // with --order, the owner of all rings
  double reported_at_ = 0;
  std::uint64_t reported_delivered_ = 0;
  std::uint64_t reported_lost_ = 0;
};

}  // namespace

std::vector<std::string> LiveCpuOutcome::violations() const {
  std::vector<std::string> violated;
  const auto violate = [&](const std::string& what) {
    violated.push_back(fmt::format("CPU {}: {}", cpu, what));
  };
  const auto hold = [&](bool holds, oracle::Invariant invariant, const std::string& what) {
    if (!holds) violate(to_string(oracle::Violation{invariant, what}));
  };
  using enum oracle::Invariant;
  if (output.failed != 0) {
    violate(fmt::format("{} failed, the last with error {}", counted(output.failed, "output"),
                        output.last_error));
  }
  hold(audit.delivered <= output.accepted, no_invention,
       fmt::format("{} delivered, but only {} accepted by the kernel", audit.delivered,
                   output.accepted));
  hold(output.attempted == audit.delivered + audit.lost, no_loss,
       fmt::format("{} attempted, but {} delivered + {} lost", output.attempted, audit.delivered,
                   audit.lost));
  hold(output.full == audit.lost, no_loss,
       fmt::format("{} refused by a full ring, but {} reported as lost", output.full, audit.lost));
  hold(audit.out_of_order == 0, order, fmt::format("{} out of order", audit.out_of_order));
  hold(audit.corrupt == 0, intact, fmt::format("{} corrupt", audit.corrupt));
  hold(audit.malformed == 0, intact, fmt::format("{} malformed", audit.malformed));
  std::ranges::for_each(found, violate);
  return violated;
}

std::optional<std::string> why_not_live() {
  const auto why = live::why_no_live_kernel();
  if (!why) return std::nullopt;
  const std::string advice = live::advice_on_capabilities();
  return advice.empty() ? *why : *why + '\n' + advice;
}

std::expected<LiveOutcome, std::string> run_live(
    const LiveOptions& options, const std::atomic<bool>& stop,
    const std::function<void(const LiveProgress&)>& on_progress) {
  if (const auto why = why_not_live()) return std::unexpected(*why);
  auto generator = live::Generator::load(options.payload);
  if (!generator) return std::unexpected(generator.error());
  LiveRun run{options, *generator};
  const auto opened = run.open(options.cpus);
  if (!opened) return std::unexpected(opened.error());
  return run.run(stop, on_progress);
}

}  // namespace perfring::cli
