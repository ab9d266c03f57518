// The cost of waiting: RingSet with a latency compared with libbpf's perf_buffer__poll, on the
// host's kernel. Also the cost of checking many idle rings. See README.md.

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/bench/bench_options.h"
#include "harness/bench/race.h"
#include "harness/bench/waits.h"
#include "harness/live/live_kernel.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/options.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"

namespace perfring::bench {
namespace {

// The results of one consumer at one rate: medians over its turns, sums of counts.
struct Row {
  std::vector<Waited> turns;
  double of(double Waited::* figure) const {
    std::vector<double> all;
    for (const Waited& each : turns) all.push_back(each.*figure);
    return median(all);
  }
  bool accounts() const {
    bool all = true;
    for (const Waited& each : turns) all = all && each.accounts();
    return all;
  }
  std::uint64_t lost() const {
    std::uint64_t sum = 0;
    for (const Waited& each : turns) sum += each.lost;
    return sum;
  }
};
struct Line {
  std::uint64_t per_second;
  Row ours;
  Row libbpf;
  double ratio(double Waited::* figure) const { return libbpf.of(figure) / ours.of(figure); }
};

// Returns a turn with the writer's and the consumer's CPU, or why the live kernel cannot be
// measured.
std::expected<WaitTurn, std::string> turn_of(const WaitOptions& options) {
  if (const auto why = live::why_no_live_kernel()) return std::unexpected(first_line(*why));
  const auto cpus = os::online_cpus();
  if (!cpus) return std::unexpected(cpus.error().explain());
  if (cpus->size() < 2)
    return std::unexpected("there is only one CPU: the writer and the consumer need one each");
  return WaitTurn{
      .per_second = 0,
      .latency = std::chrono::nanoseconds{static_cast<std::int64_t>(options.latency_us * 1e3)},
      .length = std::chrono::nanoseconds{static_cast<std::int64_t>(options.seconds * 1e9)},
      .pages = options.pages,
      .writer_cpu = (*cpus)[1],
      .consumer_cpu = (*cpus)[0]};
}

// Measures both in turns, so that a disturbance affects both.
std::expected<Line, std::string> measure(const WaitOptions& options, WaitTurn turn,
                                         std::uint64_t per_second, const StopOnSignals& stop) {
  Line line{per_second, {}, {}};
  turn.per_second = per_second;
  for (std::uint64_t i = 0; i < options.rounds && !stop.requested(); ++i) {
    auto ours = wait_by_ring_set(turn);
    if (!ours) return std::unexpected(ours.error());
    auto libbpf = wait_by_libbpf(turn);
    if (!libbpf) return std::unexpected(libbpf.error());
    line.ours.turns.push_back(*ours);
    line.libbpf.turns.push_back(*libbpf);
  }
  return line;
}

std::string cells(const Row& row) {
  return fmt::format(" |{:>10} {:7.2f} {:6.0f} {:7.0f} {:7.0f} {:>7}",
                     grouped(row.of(&Waited::per_second)), row.of(&Waited::cpu_percent),
                     row.of(&Waited::writer_ns), row.of(&Waited::p50_us), row.of(&Waited::p99_us),
                     grouped(row.lost()));
}

std::string table(const WaitOptions& options, const std::vector<Line>& lines) {
  const std::string names = fmt::format(" |{:>10} {:>7} {:>6} {:>7} {:>7} {:>7}", "records/s",
                                        "CPU %", "write", "p50 us", "p99 us", "lost");
  std::string text = fmt::format(
      "latency {} us; write: ns in bpf_perf_event_output for each record; medians of {}\n"
      "{:>9} |{:^49} |{:^49} | libbpf / RingSet\n{:>9}{}{} |{:>7} {:>7} {:>7}\n",
      options.latency_us, counted(options.rounds, "turn"), "", "RingSet with that latency",
      "libbpf: perf_buffer__poll", "wanted/s", names, names, "CPU", "write", "p99");
  for (const Line& line : lines) {
    text += fmt::format("{:>9}{}{} |{:6.1f}x {:6.1f}x {:6.2f}x{}\n", grouped(line.per_second),
                        cells(line.ours), cells(line.libbpf), line.ratio(&Waited::cpu_percent),
                        line.ratio(&Waited::writer_ns), line.ratio(&Waited::p99_us),
                        line.ours.accounts() && line.libbpf.accounts()
                            ? ""
                            : "  WRONG: accepted differs from delivered, or refused from lost");
  }
  return text;
}

Json json_of(const WaitOptions& options, const std::vector<Line>& lines, const IdleRings& idle) {
  auto all = Json::array();
  const auto put = [](Json& to, const std::string& who, const Row& row) {
    to[who + " records/s"] = row.of(&Waited::per_second);
    to[who + " CPU %"] = row.of(&Waited::cpu_percent);
    to[who + " write ns"] = row.of(&Waited::writer_ns);
    to[who + " p50 us"] = row.of(&Waited::p50_us);
    to[who + " p99 us"] = row.of(&Waited::p99_us);
    to[who + " lost"] = row.lost();
  };
  for (const Line& line : lines) {
    Json each{{"name", fmt::format("wait/{}", line.per_second)}};
    put(each, "RingSet", line.ours);
    put(each, "libbpf", line.libbpf);
    each["RingSet p99/latency"] = line.ours.of(&Waited::p99_us) / options.latency_us;
    each["libbpf/RingSet CPU"] = line.ratio(&Waited::cpu_percent);
    each["libbpf/RingSet write"] = line.ratio(&Waited::writer_ns);
    each["libbpf/RingSet p99"] = line.ratio(&Waited::p99_us);
    all.push_back(each);
  }
  all.push_back({{"name", fmt::format("idle/{}", options.idle)},
                 {"heads ns", idle.heads},
                 {"round ns", idle.round},
                 {"plain ns", idle.plain},
                 {"heads/plain", idle.heads / idle.plain}});
  return all;
}

int wait(int argc, char** argv) {
  auto parsed = parse_wait(argc, argv);
  if (const auto* answer = std::get_if<Answer>(&parsed)) return print_answer(*answer);
  const auto& options = std::get<WaitOptions>(parsed);
  const StopOnSignals stop;
  constexpr unsigned kIdleRounds = 51;
  const IdleRings idle = measure_idle_rings(options.idle, kIdleRounds);
  std::string text = fmt::format(
      "{} idle rings: {:.0f} ns to read all heads, {:.0f} ns for a round ({:.0f} ns for plain "
      "loads)\n",
      options.idle, idle.heads, idle.round, idle.plain);
  std::vector<Line> lines;
  bool wrong = false;
  const auto turn = turn_of(options);
  if (turn) {
    for (const std::uint64_t rate : options.rates) {
      if (stop.requested()) break;
      auto line = measure(options, *turn, rate, stop);
      if (!line) return fail(line.error());
      wrong = wrong || !line->ours.accounts() || !line->libbpf.accounts();
      if (!line->ours.turns.empty()) lines.push_back(*std::move(line));
    }
    text += table(options, lines);
  }
  const Conclusion conclusion =
      conclude(wrong, stop.requested(), turn ? "" : "waiting was skipped: " + turn.error());
  if (conclusion.verdict == Verdict::NotShown) text += sentence(conclusion, "") + "\n";
  if (!options.json.empty()) {
    Json json = to_json(conclusion);
    json["benchmarks"] = json_of(options, lines, idle);
    const auto written = write_output("--json", options.json, dump(json));
    if (!written) return fail(written.error());
  }
  if (options.json == "-") return exit_code(conclusion.verdict);
  return deliver(text, exit_code(conclusion.verdict), "the table");
}

}  // namespace
}  // namespace perfring::bench

int main(int argc, char** argv) {
  return perfring::run_program("wait", perfring::bench::wait, argc, argv);
}
