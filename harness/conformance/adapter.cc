#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/conformance/cases/vector.h"
#include "harness/conformance/subjects.h"
#include "harness/conformance/supervisor/descendants.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/conformance/watched_adapter.h"
#include "harness/program/child_process.h"
#include "harness/program/console.h"
#include "harness/program/numbers.h"
#include "harness/program/sanitizers.h"

namespace perfring::conformance {
namespace {

using Kind = Wanted::Kind;

constexpr int kNotSupported = 77;
constexpr int kKilled = 128 + SIGKILL;  // a shell's exit code

bool take_line(std::string_view line, Printed& printed) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  const std::string_view rest = line.substr(std::min(space + 1, line.size()));
  if (word == "sample") {
    auto bytes = parse_hex(rest);
    if (!bytes) return false;
    printed.events.push_back({.payload = *std::move(bytes)});
  } else if (word == "lost") {
    const auto count = parse_number(rest);
    if (!count) return false;
    printed.events.push_back({.kind = Kind::Lost, .lost = *count});
  } else if (word == "error") {
    printed.events.push_back({.kind = Kind::Bad});
  } else if (word == "tail") {
    printed.tail = parse_number(rest);
    printed.ends_with_tail = true;
    return printed.tail.has_value();
  } else {
    return false;
  }
  printed.ends_with_tail = false;
  return true;
}

struct OneRun {
  ProcessResult ended{};
  bool late = false;  // it exceeded limits.seconds
  double cpu_seconds = 0;
};

double cpu_seconds_of_children() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  return cpu_seconds_of(used);
}

std::vector<std::string> words_of(const std::string& command, const RingImage& image,
                                  const Case& of) {
  return {"/bin/sh",
          "-c",
          "exec " + command + " \"$@\"",
          "sh",
          fmt::format("/proc/{}/fd/{}", ::getpid(), image.fd()),
          std::to_string(of.settings.pages),
          std::to_string(of.settings.sample_type)};
}

// Starts the adapter watched, or returns nullptr if this system allows no tracing.
std::unique_ptr<WatchedAdapter> start_watched(const std::string& command, RingImage& image,
                                              const std::vector<Early>& early, const Case& of,
                                              const ProcessLimits& limits, Cell& cell) {
  static bool is_allowed = !kSanitized;  // a sanitizer has faults and calls of its own
  if (!is_allowed) return nullptr;
  try {
    return std::make_unique<WatchedAdapter>(words_of(command, image, of), image, early,
                                            of.is_plain(), limits, cell);
  } catch (const CannotRun&) {
    is_allowed = false;
    return nullptr;
  }
}

OneRun run_watched(TracedProcess& process, const ProcessLimits& limits) {
  const auto begin = std::chrono::steady_clock::now();
  const double before = cpu_seconds_of_children();
  OneRun run;
  while (process.step()) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    run.late = took.count() > limits.seconds;
    if (run.late || (limits.stop != nullptr && *limits.stop)) process.signal(SIGKILL);
  }
  const int status = process.status();
  run.ended = {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), process.out(),
               process.err()};
  run.cpu_seconds = cpu_seconds_of_children() - before;
  return run;
}

OneRun run_unwatched(const std::string& command, const RingImage& image, const Case& of,
                     const ProcessLimits& limits) {
  const auto begin = std::chrono::steady_clock::now();
  const double before = cpu_seconds_of_children();
  const Descendants descendants;
  const pid_t parent = ::getpid();
  ChildProcess child{words_of(command, image, of), "\n", [&] {
                       ::setsid();
                       confine(limits);
                       if (::getppid() != parent) ::_exit(1);  // the parent ended before confine()
                     }};
  OneRun run;
  child.wait_for_end([&] {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    run.late = took.count() > limits.seconds;
    return run.late || (limits.stop != nullptr && *limits.stop);
  });
  child.signal_group(SIGKILL);  // the group that setsid(2) created
  run.ended = child.wait();
  run.cpu_seconds = cpu_seconds_of_children() - before;
  descendants.end();
  return run;
}

// Returns true if the adapter ended well. Otherwise worsens the cell.
bool ended_well(const std::string& command, const OneRun& run, const ProcessLimits& limits,
                Cell& cell) {
  const ProcessResult& ended = run.ended;
  const std::string error_line = ended.err.empty() ? "" : ": " + first_line(ended.err);
  if (ended.exit_code == 126 || ended.exit_code == 127) {
    throw CannotRun{
        fmt::format("--adapter: {} cannot be started{}: give a command that the shell "
                    "finds, or the path of a program that may be executed",
                    in_quotes(command), error_line)};
  }
  if (ended.exit_code == kNotSupported) {
    cell.worsen(CaseOutcome::NotRun, "the adapter does not support it" + error_line);
    cell.unsupported = cell.outcome == CaseOutcome::NotRun;
    return false;
  }
  if (ended.exit_code == kKilled && run.late) {
    cell.worsen(CaseOutcome::Hangs, fmt::format("it did not end within {} s", limits.seconds));
    return false;
  }
  // The kernel kills an adapter that ignores SIGXCPU a second later.
  if (ended.exit_code == kKilled && run.cpu_seconds >= limits.cpu_seconds) {
    cell.worsen(CaseOutcome::Hangs, fmt::format("{} s of CPU time", limits.cpu_seconds));
    return false;
  }
  return judge_end(ended.exit_code, ended.out, ended.err, limits, cell);
}

}  // namespace

std::expected<Printed, std::string> parse_printed(std::string_view out) {
  Printed printed;
  while (!out.empty()) {
    const std::size_t end = std::min(out.find('\n'), out.size());
    const std::string_view line = out.substr(0, end);
    out.remove_prefix(std::min(end + 1, out.size()));
    if (line.empty()) continue;
    if (!take_line(line, printed)) return std::unexpected(first_line(line));
  }
  return printed;
}

namespace {

std::string why_no_tail(const Printed& printed) {
  return printed.tail ? "it printed more after its tail line, which must be the last"
                      : "it printed no tail line, which must be the last";
}

std::string why_no_line(const std::string& line) {
  return "a line that is not in the protocol: '" + line + "': print other text to stderr";
}

// One CPU's ring, and what its turns so far had to deliver.
struct AdaptersRing {
  RingImage image;
  std::vector<Event> so_far{};
  std::size_t delivered_early = 0;  // of the next turn's events
};

// Runs one turn. `next` is the CPU's next one, nullptr if there is none. Returns false if further
// turns cannot show more.
bool adapters_turn(const std::string& command, const Vector& vector, const Turn& turn,
                   const Turn* next, AdaptersRing& ring, const ProcessLimits& limits, Cell& cell) {
  static const std::vector<Early> kNone;
  RingImage& image = ring.image;
  image.apply(turn);
  const std::uint64_t before = image.page().data_tail;
  std::uint64_t head = image.page().data_head;
  auto expected = std::vector<Event>(
      turn.expected.begin() + static_cast<std::ptrdiff_t>(std::exchange(ring.delivered_early, 0)),
      turn.expected.end());
  const bool was_right = !is_failure(cell.outcome);
  const auto watched = start_watched(command, image, next == nullptr ? kNone : next->early,
                                     *vector.of, limits, cell);
  const OneRun run = watched != nullptr ? run_watched(watched->process(), limits)
                                        : run_unwatched(command, image, *vector.of, limits);
  cell.is_watched = watched != nullptr && watched->has_mapped();
  const auto explain = [&](std::span<const Event> delivered, bool died) {
    if (watched == nullptr || !vector.of->is_plain() || !is_failure(cell.outcome)) return;
    if (const std::string why = watched->explain(delivered, died); !why.empty()) {
      cell.detail += "; " + why;
    }
  };
  if (!ended_well(command, run, limits, cell)) return explain({}, true), false;
  if (const Early* const early = watched != nullptr ? watched->consumed() : nullptr) {
    head = early->head;
    ring.delivered_early = early->events;
    expected.insert(expected.end(), next->expected.begin(),
                    next->expected.begin() + static_cast<std::ptrdiff_t>(early->events));
  }
  const auto printed = parse_printed(run.ended.out);
  if (!printed || !printed->ends_with_tail) {
    cell.worsen(CaseOutcome::NotRun,
                printed ? why_no_tail(*printed) : why_no_line(printed.error()));
    return false;
  }
  if (image.page().data_tail != *printed->tail) {
    cell.worsen(CaseOutcome::Garbage, fmt::format("it printed tail {}, but the ring has {}",
                                                  *printed->tail, image.page().data_tail));
  }
  judge_turn(*vector.of, ring.so_far, expected, printed->events, cell);
  judge_tail(*vector.of, {before, head, image.page().data_tail}, cell);
  if (was_right) explain(printed->events, false);
  return true;
}

}  // namespace

Cell run_adapter(const std::string& command, const Vector& vector, const ProcessLimits& limits) {
  Cell cell;
  std::vector<AdaptersRing> rings;
  for (RingImage& image : images_of(vector)) rings.push_back({std::move(image)});
  const auto turn = [&](const Turn& each, const Turn* next) {
    return adapters_turn(command, vector, each, next, rings[each.cpu], limits, cell);
  };
  for (auto each = vector.turns.begin(); each != vector.turns.end(); ++each) {
    const auto next = std::find_if(each + 1, vector.turns.end(),
                                   [&](const Turn& other) { return other.cpu == each->cpu; });
    if (!turn(*each, next == vector.turns.end() ? nullptr : &*next)) return cell;
  }
  if (cell.outcome != CaseOutcome::Right) return cell;
  static_cast<void>(std::ranges::all_of(vector.once_more(),
                                        [&](const Turn& each) { return turn(each, nullptr); }));
  return cell;
}

}  // namespace perfring::conformance
