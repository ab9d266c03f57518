#ifndef HARNESS_CLI_LIVE_H_
#define HARNESS_CLI_LIVE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/live/generator.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The order of draining: each ring by itself; all of them in the order of their events' times; or
// the fullest first. lib's RingSet does the last two.
enum class LiveOrder : std::uint8_t { Each, Time, Fullest };

// The options of a run of the demonstration.
struct LiveOptions {
  bool bare = false;  // not a single argument: the simulated kernel may take the live one's place
  double seconds = 5;
  std::vector<std::uint32_t> cpus = {};  // none: all that there are
  live::PayloadRange payload{8, 256};
  std::size_t pages = 256;
  // Bytes written between two wakeups; 0: each record wakes. None given: a quarter of the ring.
  std::int64_t watermark = -1;
  LiveOrder order = LiveOrder::Each;
  bool simulated = false;  // the simulated kernel, even if the live one can be used
  bool json = false;
  std::string dump{};  // a file for the first ring as it is at the end, for `perfring inspect`
};

void declare(CLI::App& app, LiveOptions& options);
// Why these values, each of them allowed, cannot be combined; empty if they can.
std::string conflict(const LiveOptions& options);

// Parsers of option texts; the error says what is accepted.
template <class T>
using Parsed = std::expected<T, std::string>;

Parsed<live::PayloadRange> parse_payload(std::string_view text);       // "8", "8-1024"
Parsed<std::vector<std::uint32_t>> parse_cpus(std::string_view text);  // "0", "0-2,5"
Parsed<std::int64_t> parse_watermark(std::string_view text);

// `wanted`, or all of `there` if none is. An error names the first that is not there; `what` says
// what they are.
Parsed<std::vector<std::uint32_t>> choose_cpus(const std::vector<std::uint32_t>& wanted,
                                               const std::vector<std::uint32_t>& there,
                                               std::string_view what);

// One CPU's outcome: the writer's ledger, and what came out of the ring.
struct LiveCpuOutcome {
  std::uint32_t cpu;
  live::OutputCounts output;
  live::AuditCounts audit;
  std::uint64_t wakeups;             // times epoll reported the event, or with RingSet any of them
  double records_per_second;         // delivered
  std::vector<std::string> found{};  // violations that the figures do not show

  // The invariants that do not hold, each by name and with its figures. Empty if all hold.
  std::vector<std::string> violations() const;
};

// The figures of a merge by time; nanoseconds.
struct LiveMerge {
  std::uint64_t late;
  std::uint64_t worst_late;
  std::uint64_t delay_seen;  // the longest that a writer was proved to take
  std::uint64_t slack;       // at the end
  std::uint64_t ahead = 0;   // records whose time was later than the clock of their reader
  std::string note = {};     // on their clock, if it is another
};

struct LiveOutcome {
  std::vector<LiveCpuOutcome> cpus;
  double seconds;  // that records were generated for
  bool interrupted;
  std::string simulated_because{};  // why it was the simulated kernel; empty: it was the live one
  std::optional<LiveMerge> merge{};
  std::string dump{};  // the first ring as it was when the time was over, records unread in it
};

// The progress of a run, for one line.
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

// "  1.5 s  4,210,331 events/s  12 lost/s  fill 25% 31%"
std::string progress_line(const LiveProgress& progress);

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures.
std::string verdict_table(const LiveOutcome& outcome);
std::string verdict_json(const LiveOutcome& outcome);

// Whether every invariant holds on every CPU, of at least one record each.
Conclusion conclusion_of(const LiveOutcome& outcome);

// run_live() with the simulated kernel in the live one's place: a thread on each CPU writes to a
// ring, as fast as it can, and this one drains them all with lib's Ring. `why` is what the outcome
// says of it. An error is one of the environment.
std::expected<LiveOutcome, std::string> run_simulated(
    const LiveOptions& options, const std::string& why, const std::atomic<bool>& stop,
    const std::function<void(const LiveProgress&)>& on_progress);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_LIVE_H_
