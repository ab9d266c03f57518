#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
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
#include "harness/program/child_process.h"
#include "harness/program/console.h"
#include "harness/program/numbers.h"

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

OneRun run_once(const std::string& command, const RingImage& image, const Case& of,
                const ProcessLimits& limits) {
  const auto begin = std::chrono::steady_clock::now();
  const double before = cpu_seconds_of_children();
  const Descendants descendants;
  const pid_t parent = ::getpid();
  ChildProcess child{{"/bin/sh", "-c", "exec " + command + " \"$@\"", "sh",
                      fmt::format("/proc/{}/fd/{}", parent, image.fd()),
                      std::to_string(of.settings.pages), std::to_string(of.settings.sample_type)},
                     "\n",
                     [&] {
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

// Runs one turn. Returns false if further turns cannot show more.
bool adapters_turn(const std::string& command, const Vector& vector, const Turn& turn,
                   RingImage& image, std::vector<Event>& so_far, const ProcessLimits& limits,
                   Cell& cell) {
  image.apply(turn);
  const std::uint64_t before = image.page().data_tail;
  const std::uint64_t head = image.page().data_head;
  const OneRun run = run_once(command, image, *vector.of, limits);
  if (!ended_well(command, run, limits, cell)) return false;
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
  judge_turn(*vector.of, so_far, turn.expected, printed->events, cell);
  judge_tail(*vector.of, {before, head, image.page().data_tail}, cell);
  return true;
}

}  // namespace

Cell run_adapter(const std::string& command, const Vector& vector, const ProcessLimits& limits) {
  Cell cell;
  std::vector<RingImage> images = images_of(vector);
  std::vector<std::vector<Event>> so_far(images.size());
  const auto turn = [&](const Turn& each) {
    return adapters_turn(command, vector, each, images[each.cpu], so_far[each.cpu], limits, cell);
  };
  if (!std::ranges::all_of(vector.turns, turn) || cell.outcome != CaseOutcome::Right) return cell;
  static_cast<void>(std::ranges::all_of(vector.once_more(), turn));
  return cell;
}

}  // namespace perfring::conformance
