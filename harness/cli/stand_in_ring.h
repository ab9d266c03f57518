#ifndef HARNESS_CLI_STAND_IN_RING_H_
#define HARNESS_CLI_STAND_IN_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>

#include "harness/cli/live.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/stream_checker.h"
#include "harness/rig/ledger_cpu.h"
#include "harness/rig/simulated_ring.h"
#include "perfring/perfring.h"

namespace perfring::cli {

// One CPU's ring of the simulated kernel: a thread that writes to it, and its consumer's side.
class StandInRing {
 public:
  // `eventfd` is signalled when a waiter would be woken. Throws std::system_error if there is no
  // memory.
  StandInRing(std::uint32_t cpu, const LiveOptions& options, std::uint32_t watermark, int eventfd);
  ~StandInRing() { stopping_ = true; }
  StandInRing(const StandInRing&) = delete;
  StandInRing& operator=(const StandInRing&) = delete;

  // The writer's thread. What ends it, other than stop(), stop() throws.
  void start();
  void stop();
  // One more record, by this thread: its LOST reports the losses that are still pending. After
  // stop().
  void flush();

  // Takes the kernel's readiness flag, which is whether it was set.
  bool poll() { return kernel::perf_poll(simulated_.event()) != 0; }
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
  std::future<void>
      thread_;  // last: to destroy it is to wait for the thread, which uses the others
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_STAND_IN_RING_H_
