// Adapters: consumers that are programs of their own.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "harness/conformance/subjects.h"
#include "harness/program/child_process.h"
#include "harness/program/console.h"

namespace perfring::conformance {
namespace {

using Kind = Wanted::Kind;

constexpr int kNotSupported = 77;
constexpr int kSignal = 128;  // and the signal's number: a shell's exit code

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<std::byte>> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(&hex[i], &hex[i] + 2, byte, 16);
    if (error != std::errc{} || end != &hex[i] + 2) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

bool take_line(std::string_view line, Printed& printed) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  const std::string_view rest = line.substr(std::min(space + 1, line.size()));
  if (word == "sample") {
    auto bytes = bytes_of(rest);
    if (!bytes) return false;
    printed.events.push_back({.payload = *std::move(bytes)});
  } else if (word == "lost") {
    const auto count = number(rest);
    if (!count) return false;
    printed.events.push_back({.kind = Kind::Lost, .lost = *count});
  } else if (word == "error") {
    printed.events.push_back({.kind = Kind::Bad});
  } else if (word == "tail") {
    printed.tail = number(rest);
    return printed.tail.has_value();
  } else {
    return false;
  }
  return true;
}

std::string first_line(std::string_view text) {
  return one_line(text.substr(0, std::min(text.find('\n'), std::size_t{200})));
}

// How it ended, if not as it should.
bool ended_badly(const Ended& ended, const Limits& limits, Cell& cell) {
  const int signal = ended.exit_code - kSignal;
  const std::string said = ended.err.empty() ? "" : ": " + first_line(ended.err);
  if (ended.exit_code == 0) return false;
  if (ended.exit_code == kNotSupported) {
    cell.worsen(Outcome::NotRun, "the adapter does not support it" + said);
    cell.unsupported = cell.outcome == Outcome::NotRun;
  } else if (ended.exit_code == 126 || ended.exit_code == 127) {
    cell.worsen(Outcome::NotRun, "it cannot be started" + said);
  } else if (signal == SIGXFSZ) {
    cell.worsen(Outcome::Floods, fmt::format("more than {} bytes of output", limits.output));
  } else if (signal == SIGXCPU) {
    cell.worsen(Outcome::Hangs, fmt::format("{} s of CPU time", limits.cpu_seconds));
  } else if (signal == SIGKILL) {
    cell.worsen(Outcome::Hangs, fmt::format("no end within {} s", limits.seconds));
  } else if (signal > 0) {
    cell.worsen(Outcome::Crashes, fmt::format("signal {}{}", signal, said));
  } else {
    cell.worsen(Outcome::Crashes, fmt::format("exit code {}{}", ended.exit_code, said));
  }
  return true;
}

Ended run_once(const std::string& command, const RingImage& image, const Case& of,
               const Limits& limits) {
  ChildProcess child{
      {"/usr/bin/timeout", "--signal=KILL", fmt::format("{}", limits.seconds), "/usr/bin/prlimit",
       "--core=0", fmt::format("--cpu={}:{}", limits.cpu_seconds, limits.cpu_seconds + 1),
       fmt::format("--fsize={}", limits.output), "/bin/sh", "-c", "exec " + command + " \"$@\"",
       "sh", fmt::format("/proc/{}/fd/{}", ::getpid(), image.fd()),
       std::to_string(of.settings.pages), std::to_string(of.settings.sample_type)},
      "\n"};
  const pid_t group = child.id();  // timeout(1) makes one
  Ended ended = child.wait();
  ::kill(-group, SIGKILL);  // what it has left running
  return ended;
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

Cell run_adapter(const std::string& command, const Vector& vector, const Limits& limits) {
  Cell cell;
  RingImage image{vector};
  for (std::size_t i = 0; i <= vector.turns.size(); ++i) {
    const bool last = i == vector.turns.size();
    if (last && cell.outcome != Outcome::Right) break;
    if (!last) image.apply(vector.turns[i]);
    const std::uint64_t before = image.page().data_tail;
    const std::uint64_t head = image.page().data_head;
    const Ended ended = run_once(command, image, *vector.of, limits);
    if (ended_badly(ended, limits, cell)) return cell;
    const auto printed = parse_printed(ended.out);
    if (!printed || !printed->tail) {
      cell.worsen(Outcome::NotRun,
                  printed ? "it printed no tail" : "not the protocol's: '" + printed.error() + "'");
      return cell;
    }
    if (image.page().data_tail != *printed->tail) {
      cell.worsen(Outcome::Garbage, fmt::format("it says tail {}, and the ring has {}",
                                                *printed->tail, image.page().data_tail));
    }
    const std::vector<Event> none;
    judge_events(*vector.of, last ? none : vector.turns[i].expected, printed->events, cell);
    judge_tail(*vector.of, {before, head, image.page().data_tail}, cell);
  }
  return cell;
}

}  // namespace perfring::conformance
