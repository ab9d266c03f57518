#ifndef HARNESS_CLI_DEMO_LIVE_H_
#define HARNESS_CLI_DEMO_LIVE_H_

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

// The order of draining: each ring separately; all rings merged by the time of their events; or the
// fullest ring first. lib's RingSet implements the last two.
enum class LiveOrder : std::uint8_t { Each, Time, Fullest };

// The options of the demonstration.
struct LiveOptions {
  bool bare = false;  // no arguments at all: may fall back to the simulated kernel
  double seconds = 5;
  std::vector<std::uint32_t> cpus = {};  // empty: all CPUs
  live::PayloadRange payload{8, 256};
  std::size_t pages = 256;
  // Bytes written between two wakeups; 0: each record wakes; -1: a quarter of the ring.
  std::int64_t watermark = -1;
  LiveOrder order = LiveOrder::Each;
  bool simulated = false;  // use the simulated kernel even if the live one is available
  bool json = false;
  std::string dump{};  // a file for the final state of the first ring, for `perfring inspect`
};

void declare(CLI::App& app, LiveOptions& options);
int run_command(const LiveOptions& options);
// Returns the reason if these values, each of them valid, cannot be combined, otherwise "".
std::string conflict(const LiveOptions& options);

// The result of parsing an option's text. The error says what is accepted.
template <class T>
using Parsed = std::expected<T, std::string>;

Parsed<live::PayloadRange> parse_payload(std::string_view text);       // "8", "8-1024"
Parsed<std::vector<std::uint32_t>> parse_cpus(std::string_view text);  // "0", "0-2,5"
Parsed<std::int64_t> parse_watermark(std::string_view text);

// Returns `wanted`, or `there` if `wanted` is empty. Fails if a wanted CPU is not in `there`; the
// error names the first such CPU, and `what` describes `there`.
Parsed<std::vector<std::uint32_t>> choose_cpus(const std::vector<std::uint32_t>& wanted,
                                               const std::vector<std::uint32_t>& there,
                                               std::string_view what);

// The outcome on one CPU: the writer's ledger, and what the ring delivered.
struct LiveCpuOutcome {
  std::uint32_t cpu;
  live::OutputCounts output;
  live::AuditCounts audit;
  std::uint64_t wakeups;             // times epoll reported this event; with RingSet, any event
  double records_per_second;         // delivered records
  std::vector<std::string> found{};  // violations that the counts do not show

  // Returns the violated invariants, each with its name and counts. Empty if all hold.
  std::vector<std::string> violations() const;
};

// The figures of a merge by time. Times are in nanoseconds.
struct LiveMerge {
  std::uint64_t late;
  std::uint64_t worst_late;
  std::uint64_t longest_delay;  // the longest proved delay of a writer
  std::uint64_t slack;          // at the end of the run
  std::uint64_t ahead = 0;      // number of records with a time later than their reader's clock
  std::string note = {};        // about the records' clock, if it is not the reader's
};

struct LiveOutcome {
  std::vector<LiveCpuOutcome> cpus;
  double seconds;  // how long records were generated
  bool interrupted;
  std::string simulated_because{};  // why the simulated kernel ran; empty: the live one ran
  std::optional<LiveMerge> merge{};
  std::string dump{};  // the first ring, with its unread records, at the end of the run's time
};

// The progress of a run, shown as one line.
struct LiveProgress {
  double seconds;
  double events_per_second;
  double lost_per_second;
  std::vector<double> fill;  // for each ring, its largest drain since the last line, 1 = all of it
};

// Returns why the live kernel cannot be used here, with the missing capabilities; nullopt if it
// can.
std::optional<std::string> why_not_live();

// Generates records on each of the options' CPUs, each in its own thread, and drains the rings with
// epoll in this thread until the time is over or `stop` is set. Fails only because of the
// environment. Precondition: there is a CPU.
std::expected<LiveOutcome, std::string> run_live(
    const LiveOptions& options, const std::atomic<bool>& stop,
    const std::function<void(const LiveProgress&)>& on_progress);

// Returns "  1.5 s  4,210,331 events/s  12 lost/s  fill 25% 31%".
std::string progress_line(const LiveProgress& progress);

// The verdict as a table and as JSON, with the same figures.
std::string verdict_table(const LiveOutcome& outcome);
std::string verdict_json(const LiveOutcome& outcome);

// Concludes "holds" if every invariant holds on every CPU and each CPU had at least one record.
Conclusion conclusion_of(const LiveOutcome& outcome);

// As run_live(), but on the simulated kernel: a thread on each CPU writes to a ring as fast as it
// can, and this thread drains all rings with lib's Ring. `why` becomes simulated_because. Fails
// only because of the environment.
std::expected<LiveOutcome, std::string> run_simulated(
    const LiveOptions& options, const std::string& why, const std::atomic<bool>& stop,
    const std::function<void(const LiveProgress&)>& on_progress);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_DEMO_LIVE_H_
