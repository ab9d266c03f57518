#ifndef PERFRING_HARNESS_CLI_SIMULATED_RING_H_
#define PERFRING_HARNESS_CLI_SIMULATED_RING_H_

#include <linux/perf_event.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>

#include "harness/cli/live_options.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/kernel/ring_memory.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/stream_checker.h"
#include "perfring/perfring.h"

namespace perfring::cli {

// One CPU's ring of the simulated kernel: a thread that writes to it, and its consumer's side.
class SimulatedRing {
 public:
  // `eventfd` is signalled when a waiter would be woken. Throws std::system_error if there is no
  // memory.
  SimulatedRing(std::uint32_t cpu, const LiveOptions& options, std::uint32_t watermark,
                int eventfd);
  ~SimulatedRing() { stopping_ = true; }
  SimulatedRing(const SimulatedRing&) = delete;
  SimulatedRing& operator=(const SimulatedRing&) = delete;

  // The writer's thread. What ends it, other than stop(), stop() throws.
  void start();
  void stop();
  // One more record, by this thread: brings out losses that no LOST has told of. After stop().
  void flush();

  // Takes the kernel's readiness flag, which is whether it was set.
  bool poll() { return kernel::perf_poll(*event_) != 0; }
  // Returns how many bytes there were.
  std::uint64_t drain();
  // After stop(), once all is drained.
  void settle() { checker_.settle(ledger_.totals(), ledger_.unreported()); }

  std::uint32_t cpu() const { return cpu_id_; }
  std::uint64_t wakeups = 0;
  const oracle::StreamChecker& checker() const { return checker_; }
  // After stop().
  const oracle::Ledger& ledger() const { return ledger_; }

 private:
  // This machine's processor, and its ledger.
  struct LedgerCpu : kernel::HardwareCpu {
    explicit LedgerCpu(oracle::Ledger& of) : ledger{of} {}
    oracle::Ledger& ledger;
    void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
      ledger.reserved(position, size, read_once(rb.user_page->data_tail));
    }
    void on_lost_record(const kernel::perf_buffer&, __u64 lost) { ledger.reported(lost); }
    void on_drop(const kernel::perf_buffer&, const kernel::perf_event&) { ledger.refused(); }
  };

  void write();
  int output();

  const std::uint32_t cpu_id_;
  const live::PayloadRange payload_;
  std::shared_ptr<kernel::bpf_array> map_;
  kernel::bpf_map_file map_file_;
  kernel::RingMemory memory_;
  kernel::perf_file event_;
  kernel::perf_mapping mapping_;
  kernel::EventfdWaiter waiter_;
  oracle::Ledger ledger_;
  oracle::StreamChecker checker_;
  Ring<> ring_;
  LedgerCpu cpu_;
  std::vector<std::byte> buffer_;
  std::uint64_t sequence_ = 0;
  std::atomic<bool> stopping_{false};
  std::future<void>
      thread_;  // last: to destroy it is to wait for the thread, which uses the others
};

}  // namespace perfring::cli

#endif  // PERFRING_HARNESS_CLI_SIMULATED_RING_H_
