#ifndef HARNESS_CLI_LIVE_RUN_H_
#define HARNESS_CLI_LIVE_RUN_H_

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/live_options.h"
#include "harness/live/audit.h"
#include "harness/live/generator.h"

namespace perfring::cli {

// One CPU's outcome: the writer's ledger, and what came out of the ring.
struct CpuOutcome {
  std::uint32_t cpu;
  live::OutputCounts output;
  live::AuditCounts audit;
  std::uint64_t wakeups;             // times epoll reported the event
  double records_per_second;         // delivered
  std::vector<std::string> found{};  // violations that the figures do not show

  // The invariants that do not hold, each by name and with its figures. Empty if all hold.
  std::vector<std::string> violations() const;
};

struct LiveOutcome {
  std::vector<CpuOutcome> cpus;
  double seconds;  // that records were generated for
  bool interrupted;
  std::string simulated_because{};  // why it was the simulated kernel; empty: it was the live one
};

// How a run is going, for one line of progress.
struct LiveProgress {
  double seconds;
  double events_per_second;
  double lost_per_second;
  std::vector<double> fill;  // of each ring: the largest part drained at once since the last time
};

// Why the live kernel cannot be used here, and which capabilities are missing; nullopt if it can.
std::optional<std::string> why_not_live();

// Generates records on each of the options' CPUs with a thread of its own, and drains the rings on
// epoll in this one until the time is over or `stop` is set. An error is one of the environment.
// Precondition: there is a CPU.
std::expected<LiveOutcome, std::string> run_live(
    const LiveOptions& options, const std::atomic<bool>& stop,
    const std::function<void(const LiveProgress&)>& on_progress);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_LIVE_RUN_H_
