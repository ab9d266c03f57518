#include "harness/bench/waits.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "harness/bench/beat.h"
#include "harness/bench/bpf_args.h"
#include "harness/live/bpf_object.h"
#include "harness/program/affinity.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"
#include "perfring/perfring.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/wait/waiter.h"

namespace perfring::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Uses a real-time priority if permitted, so that other work on the machine is not measured.
void run_alone(std::uint32_t cpu) {
  run_on(cpu);
  const sched_param priority{.sched_priority = 1};
  static_cast<void>(pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority));
}

std::uint64_t thread_cpu_ns() {
  timespec spec{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spec);
  return static_cast<std::uint64_t>(spec.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(spec.tv_nsec);
}

// A writer on the host's kernel that keeps a rate (beat.bpf.c), with its own events map.
struct PacedWriter {
  static std::expected<PacedWriter, std::string> load() {
    auto object = live::BpfObject::open(live::beat(), "beat");
    if (!object) return std::unexpected(object.error());
    const auto cpus = static_cast<std::uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
    if (auto sized = object->set_max_entries("events", cpus); !sized) {
      return std::unexpected(sized.error());
    }
    if (auto loaded = object->load(); !loaded) return std::unexpected(loaded.error());
    auto program = object->program("beat");
    auto events = object->map("events");
    auto counts = object->map("counts");
    for (const auto* part : {&program, &events, &counts}) {
      if (!*part) return std::unexpected("the writer's " + part->error());
    }
    auto mapped = os::Mapping::map(counts->get(), os::page_size());
    if (!mapped) return std::unexpected("mmap of the writer's counts: " + mapped.error().message());
    return PacedWriter{*std::move(program), *std::move(events), *std::move(mapped)};
  }

  // The BPF_MAP_TYPE_PERF_EVENT_ARRAY to which it writes.
  int events_fd() const { return events_.get(); }

  // Writes `per_second` records a second on the CPU to which the caller is pinned, until `done`
  // returns true. Calls `done` every millisecond, or whenever a record is due if that is less
  // often.
  template <class Done>
  std::expected<void, std::string> write(std::uint32_t cpu, std::uint64_t per_second, Done done) {
    constexpr std::uint64_t kPicoseconds = 1'000'000'000'000;
    const std::array<std::uint64_t, BEAT_ARGUMENTS> arguments{
        std::max<std::uint64_t>(per_second / 1000, 1), kPicoseconds / per_second};
    while (!done()) {
      const auto run = live::test_run(program_.get(), cpu, arguments);
      if (!run) return std::unexpected("running the BPF program: " + run.error().message());
      if (*run != 0) return std::unexpected("the BPF program found no counts");
    }
    return {};
  }

  // The counts over all outputs so far.
  beat_counts counts() const {
    const auto& now = *reinterpret_cast<const beat_counts*>(counts_.bytes().data());
    const auto load = [](const __u64& each) { return __atomic_load_n(&each, __ATOMIC_RELAXED); };
    return {load(now.accepted), load(now.refused), load(now.output_ns)};
  }

  os::Fd program_;
  os::Fd events_;
  os::Mapping counts_;
};

// A histogram of record ages, each accurate to 1/64.
class Ages {
 public:
  void add(std::uint64_t ns) {
    ns |= kSteps;  // lower ages have no separate steps
    const auto above = static_cast<unsigned>(std::bit_width(ns)) - kStepBits - 1;
    const auto at = static_cast<std::size_t>(above * kSteps + (ns >> above) - kSteps);
    ++counts_[at < counts_.size() ? at : counts_.size() - 1];
    ++count_;
  }
  // Returns the age in ns that the fraction `part` of the records does not exceed.
  double quantile(double part) const {
    const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(count_));
    std::uint64_t total = 0;
    for (std::size_t at = 0; at != counts_.size(); ++at) {
      total += counts_[at];
      if (total > wanted) {
        return static_cast<double>((at % kSteps + kSteps + 1) << (at / kSteps));
      }
    }
    return 0;
  }

 private:
  static constexpr unsigned kStepBits = 6;
  static constexpr std::uint64_t kSteps = 1 << kStepBits;

  std::array<std::uint32_t, 40 * kSteps> counts_{};
  std::uint64_t count_ = 0;
};

// The work of a consumer's callbacks, the same for both consumers. It reads the clock for the first
// event after a wait and for every 64th, since reading the clock costs ten times as much as
// delivering an event. An age is therefore too low by up to 63 deliveries, about 1 us. At high
// rates it takes only every 8th age.
class Meter {
 public:
  explicit Meter(std::uint64_t per_second) : each_{per_second > 100'000 ? 8U : 1U} {}

  void begin_look() { taken_ = 0; }
  void take(const void* raw) {
    if (taken_ % kEventsPerClock == 0) now_ = os::monotonic_ns();
    ++taken_;
    if (++delivered_ % each_ != 0) return;
    std::uint64_t written_at;
    std::memcpy(&written_at, raw, sizeof(written_at));
    if (written_at > now_) now_ = os::monotonic_ns();
    ages_.add(now_ - written_at);
  }
  void lose(std::uint64_t count) { lost_ += count; }

  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t lost() const { return lost_; }
  const Ages& ages() const { return ages_; }

 private:
  static constexpr unsigned kEventsPerClock = 64;

  const unsigned each_;
  unsigned taken_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_ = 0;
  Ages ages_;
};

// The writer's thread. Calls `stop` when it ends.
class Writing {
 public:
  template <class Stop>
  Writing(PacedWriter& writer, const WaitTurn& turn, Stop stop)
      : thread_{[this, &writer, &turn, stop] {
          run_alone(turn.writer_cpu);
          const auto end = Clock::now() + turn.length;
          result_ =
              writer.write(turn.writer_cpu, turn.per_second, [end] { return Clock::now() >= end; });
          stop();
        }} {}
  std::expected<void, std::string> join() {
    thread_.join();
    return result_;
  }

 private:
  std::expected<void, std::string> result_;
  std::thread thread_;
};

// Measures one turn. `loop` consumes until `stop` has been called; `rest` consumes the remaining
// records.
template <class Stop, class Loop, class Rest>
std::expected<Waited, std::string> measure(PacedWriter& writer, const WaitTurn& turn,
                                           const Meter& meter, Stop stop, Loop loop, Rest rest) {
  Waited waited;
  std::expected<void, std::string> result;
  std::thread consumer{[&] {
    Writing writing{writer, turn, stop};
    run_alone(turn.consumer_cpu);
    const auto start = Clock::now();
    const std::uint64_t cpu = thread_cpu_ns();
    loop();
    const double spent = static_cast<double>(thread_cpu_ns() - cpu);
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    result = writing.join();
    const beat_counts counts = writer.counts();
    waited.cpu_percent = spent / elapsed.count() / 1e7;
    waited.per_second = static_cast<double>(counts.accepted) / elapsed.count();
    waited.p50_us = meter.ages().quantile(0.5) / 1e3;
    waited.p99_us = meter.ages().quantile(0.99) / 1e3;
    waited.writer_ns = static_cast<double>(counts.output_ns) /
                       static_cast<double>(counts.accepted + counts.refused);
    // One more record, into an empty ring, reports what was lost before it.
    rest();
    if (result) {
      run_on(turn.writer_cpu);
      bool once = false;
      result = writer.write(turn.writer_cpu, 1000, [&] { return std::exchange(once, true); });
      rest();
    }
  }};
  consumer.join();
  if (!result) return std::unexpected(result.error());
  const beat_counts counts = writer.counts();
  waited.accepted = counts.accepted;
  waited.refused = counts.refused;
  waited.delivered = meter.delivered();
  waited.lost = meter.lost();
  return waited;
}

}  // namespace

std::expected<Waited, std::string> wait_by_ring_set(const WaitTurn& turn) {
  auto writer = PacedWriter::load();
  if (!writer) return std::unexpected(writer.error());
  const auto array = PerfEventArray::from_fd(writer->events_fd());
  if (!array) return std::unexpected(array.error().explain());
  RingSetOptions options;
  options.page_count = turn.pages;
  options.latency = turn.latency;
  auto set = RingSet::open(*array, options);
  if (!set) return std::unexpected(set.error().explain());
  Meter meter{turn.per_second};
  const auto take = [&](std::uint32_t, const PerfEvent& event) {
    if (const auto* const sample = std::get_if<Sample>(&event)) {
      if (sample->head.size() >= sizeof(std::uint64_t)) [[likely]]
        return meter.take(sample->head.data());
      const auto whole = sample->as<std::uint64_t>();
      if (whole) meter.take(&*whole);
    } else if (const auto* const lost = std::get_if<Lost>(&event)) {
      meter.lose(lost->count);
    }
  };
  const auto drain = [&] {
    meter.begin_look();
    set->drain(take);
  };
  return measure(
      *writer, turn, meter, [&] { set->stop(); },
      [&] {
        while (set->wait() != Woken::Stop) drain();
      },
      drain);
}

std::expected<Waited, std::string> wait_by_libbpf(const WaitTurn& turn) {
  struct Free {
    void operator()(perf_buffer* buffer) const { perf_buffer__free(buffer); }
  };
  auto writer = PacedWriter::load();
  if (!writer) return std::unexpected(writer.error());
  Meter meter{turn.per_second};
  const std::unique_ptr<perf_buffer, Free> buffer{perf_buffer__new(
      writer->events_fd(), turn.pages,
      [](void* to, int, void* raw, __u32) { static_cast<Meter*>(to)->take(raw); },
      [](void* to, int, __u64 count) { static_cast<Meter*>(to)->lose(count); }, &meter, nullptr)};
  if (buffer == nullptr) {
    return std::unexpected("perf_buffer__new: " + std::generic_category().message(errno));
  }
  constexpr int kTimeoutMs = 100;
  std::atomic<bool> stop = false;
  return measure(
      *writer, turn, meter, [&] { stop = true; },
      [&] {
        while (!stop) {
          meter.begin_look();
          perf_buffer__poll(buffer.get(), kTimeoutMs);
        }
      },
      [&] {
        meter.begin_look();
        perf_buffer__consume(buffer.get());
      });
}

}  // namespace perfring::bench
