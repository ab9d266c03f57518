#ifndef HARNESS_SIMULATOR_SITE_H_
#define HARNESS_SIMULATOR_SITE_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/payload.h"
#include "harness/rig/simulated_ring.h"
#include "harness/simulator/judge.h"
#include "harness/simulator/scheduler.h"
#include "harness/simulator/world.h"
#include "perfring/perf_event.h"
#include "perfring/wait/wakeups.h"

namespace perfring::simulator {

// One CPU with its event, its ring and the entry of a BPF map: its kernel objects, the tasks that
// run on it, and how the consumer waits. `ledger` is the writer's record, `drains` the consumer's.
class Site final : public kernel::wait_queue_entry {
 public:
  Site(World& world, int cpu);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  World& world() const { return world_; }
  int cpu() const { return cpu_; }
  const kernel::bpf_array& map() const { return ring_.map(); }
  kernel::perf_event& event() { return ring_.event(); }
  const kernel::perf_buffer& rb() const { return ring_.rb(); }
  perf_event_mmap_page& page() const { return ring_.page(); }
  Bytes data() const { return ring_.data(); }
  std::span<std::byte> writable_data() const { return {rb().data_pages, data().size()}; }
  std::uint32_t page_head() const { return static_cast<std::uint32_t>(page().data_head); }

  oracle::Ledger& ledger() { return ledger_; }
  const oracle::Ledger& ledger() const { return ledger_; }
  Drains& drains() { return drains_; }
  const Drains& drains() const { return drains_; }
  Judge& judge() { return drains_.judge(); }
  const Judge& judge() const { return drains_.judge(); }

  // The tasks that run on this CPU. Set both before the run.
  void set_producer(Task& task) { producer_ = &task; }
  void set_consumer(Task& task) { consumer_ = &task; }
  Task& producer() { return *producer_; }
  Task& consumer() { return *consumer_; }

  // The kernel's side: an output, its reservation, and the interrupt that wakes.
  void begin_program() { ++programs_; }
  void end_program() {
    if (--programs_ == 0) ++quiescent_periods_;
  }
  // Returns true if every program that was running when quiescent_periods() returned
  // `quiescent_periods` has ended.
  bool quiesced_since(std::uint64_t pauses) const {
    return programs_ == 0 || quiescent_periods_ != pauses;
  }
  std::uint64_t quiescent_periods() const { return quiescent_periods_; }
  // The program reads its clock for the next payload.
  void stamp_next_payload();
  void begin_attempt(const oracle::Payload& payload);
  void note_reservation(std::uint64_t position, std::size_t size);
  void end_attempt(int rc);
  void note_publication() {
    if (merged_ != nullptr) merged_->note_publication();
  }
  void irq_work_queue() { irq_work_ = true; }
  bool irq_work() const { return irq_work_; }
  void run_irq_work();

  // The consumer's side: before each access to memory other tasks may run. A consumer that keeps
  // reading and delivers nothing never runs again.
  void consumer_step() {
    if (world_.scheduler.step()) [[unlikely]]
      consumer_->yield();
  }
  void check_read(const std::byte* address, std::size_t size) {
    if (!drains_.check_read(address, size)) [[unlikely]]
      stop_consumer();
  }
  bool readable() const;

  // For one consumer of all rings: what it does besides draining them. `deadline`: when it wakes if
  // nobody wakes it. poll() takes the flag.
  void begin_sleep(std::uint64_t deadline);
  void forget_wakeup() { woken_ = false; }
  bool woken() const { return woken_; }
  void end_sleep() { waiting_ = false; }
  bool poll();
  const MergeJudge* merged() const { return merged_; }
  // The key of the payload with this sequence number, or 0 if there is none.
  std::uint64_t key_of(std::uint64_t sequence) const {
    return sequence < keys_.size() ? keys_[static_cast<std::size_t>(sequence)] : 0;
  }
  // Puts the event that wakes for each record, or for none, into the map entry.
  void fill_entry(Wakeups wakeups);
  Wakeups entry() const { return entry_; }

  // The CPU goes offline and comes back. Its events are dead afterwards, until the consumer revives
  // them. take_change() reports each change once.
  bool can_go_offline() const { return !offline_ && programs_ == 0; }
  void go_offline();
  void come_online();
  bool offline() const { return offline_; }
  bool has_change() const { return changed_; }
  bool take_change() { return std::exchange(changed_, false); }
  void revive();

  // poll(2) until the ring's flag is set, it is woken, or `timeout` steps have passed (0: forever).
  void wait(std::uint64_t timeout);
  void wake() override;
  std::uint64_t wakeups() const { return wakeups_; }
  // Checks that the consumer does not sleep while its ring holds a record that nobody will
  // announce. Precondition: nobody is executing in the kernel.
  void check_awake();

 private:
  [[noreturn]] void stop_consumer();
  void check_deadline();
  kernel::perf_file open_beside(bool quiet);

  World& world_;
  const int cpu_;
  rig::SimulatedRing ring_;
  oracle::Ledger ledger_;
  PoisonMap poison_;
  std::vector<std::uint64_t> keys_;  // keys of the payloads, by sequence number
  MergeJudge* merged_ = nullptr;     // the judge, if the rings are merged
  Drains drains_;
  Task* producer_ = nullptr;
  Task* consumer_ = nullptr;

  const std::uint64_t clock_lag_;   // ticks by which this CPU's clock is slow
  kernel::perf_file waking_event_;  // the event that wakes for each record
  kernel::perf_file quiet_event_;   // the event that wakes for none
  const bool announces_each_;       // the kernel announces each record that it accepts
  bool irq_work_ = false;
  bool waiting_ = false;
  bool woken_ = false;
  std::uint64_t wakeups_ = 0;
  std::uint64_t sleep_deadline_ = 0;
  unsigned programs_ = 0;                // running programs, each interrupting the previous one
  std::uint64_t quiescent_periods_ = 0;  // times that the last program ended
  bool offline_ = false;
  bool changed_ = false;
  Wakeups entry_ = Wakeups::EachRecord;
  std::uint64_t entered_at_ = 0;
  std::uint64_t opened_ = 0;  // events opened in addition to the first
  bool interrupted_ = false;  // an output was under way when the last one began
  // The number of drains at the time when the kernel may have failed to announce a record.
  std::optional<std::uint64_t> gap_before_drain_;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SITE_H_
