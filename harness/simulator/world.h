#ifndef HARNESS_SIMULATOR_WORLD_H_
#define HARNESS_SIMULATOR_WORLD_H_

// One simulated machine, of `cpus` processors that each have a ring with a writer and a consumer;
// and a Site, which is one of them.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/ring_memory.h"
#include "harness/oracle/checker.h"
#include "harness/oracle/ledger.h"
#include "harness/simulator/digest.h"
#include "harness/simulator/scheduler.h"
#include "harness/simulator/settings.h"

namespace perfring::simulator {

struct World {
  // `sound`: the writers may be trusted with poisoned memory.
  World(std::uint64_t seed, const Settings& from, std::uint64_t steps, bool sound = true)
      : settings{from},
        sound_writers{sound},
        steps_max{steps},
        scheduler{seed, static_cast<unsigned>(from.interval_log2)} {}

  const Settings settings;
  const bool sound_writers;
  const std::uint64_t steps_max;
  Scheduler scheduler;
  Digest digest;
  std::uint64_t writers = 0;  // that are not done
  bool ending = false;        // the writers are to stop
  bool closing = false;       // they are done: consumers drain what is left, and end
  bool stopping = false;      // so are all, at once
  std::uint64_t drains = 0;
  std::uint64_t wakeups = 0;

  bool over() const { return ending || stopping || scheduler.now() >= steps_max; }
};

class Site final : public kernel::wait_queue_entry {
 public:
  Site(World& world, int cpu);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  World& world;
  const int cpu;
  kernel::bpf_array map;
  kernel::bpf_map_file map_file;
  kernel::RingMemory memory;
  kernel::perf_file event;
  kernel::perf_mapping mapping;
  oracle::Ledger ledger;
  oracle::Checker checker;
  Task* producer = nullptr;
  Task* consumer = nullptr;

  perf_event_mmap_page& page() const { return *mapping.rb().user_page; }
  Bytes data() const { return memory.bytes().subspan(kernel_page_size); }
  static constexpr std::size_t kernel_page_size = 4096;

  // The kernel's tracepoints and its interrupt.
  void reserved(std::uint64_t position, std::size_t size);
  void irq_work_queue() { irq_work_ = true; }
  bool irq_work() const { return irq_work_; }
  void run_irq_work();
  void begins(const oracle::Payload& payload);
  void ends(int rc);

  // The consumer's side: a step of its own, a drain's beginning, events and end. One that reads
  // and reads and delivers nothing violates `bounded`, and never runs again.
  void consumer_step() {
    if (world.scheduler.step()) [[unlikely]]
      consumer->yield();
  }
  void drain_begins();
  void delivered(const PerfEvent& event);
  void drain_ends();
  void saw_head(std::uint32_t head);
  bool readable() const;

  // poll(2) until the ring's flag is set, woken or `timeout` steps have passed (0: for ever).
  void wait(std::uint64_t timeout);
  void wake() override;
  // Nobody is at work in the kernel: is somebody asleep beside a record that was not announced?
  void check_awake();

  // Nothing is to be expected of the bytes.
  bool hostile() const { return world.settings.hostile != 0; }
  void violate(oracle::Invariant invariant, std::string message);
  const std::optional<oracle::Violation>& violation() const;
  const oracle::Received& received() const { return hostile() ? hostile_ : checker.received(); }
  void reads(const std::byte* address, std::size_t size) {
    if (++reads_ > kReadsSpare + data().size()) [[unlikely]]
      stop_endless_consumer();
    if (address == reinterpret_cast<const std::byte*>(&page().data_tail)) return;
    hostile() ? watch_.reads(address, size) : checker.reads(address, size);
  }
  // The bytes outside live records are poisoned, but for those that the kernel mishandles.
  bool poisons() const;

 private:
  // A walk of the whole ring reads every record's header.
  static constexpr std::size_t kReadsSpare = 10'000;

  void note(const PerfEvent& event);
  [[noreturn]] void stop_endless_consumer();

  std::size_t reads_ = 0;  // since an event was delivered, or a drain began or ended
  bool irq_work_ = false;
  bool waiting_ = false;
  bool woken_ = false;
  bool interrupted_ = false;  // an output, by the last that began
  bool unannounced_ = false;  // a record may be in the ring that the kernel failed to announce
  oracle::DrainWatch watch_;  // in hostile rings
  oracle::Received hostile_;
  std::optional<std::uint32_t> head_seen_;  // by this drain
  std::uint64_t tail_before_ = 0;
  std::optional<oracle::Violation> violation_;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_WORLD_H_
