// How fast full rings are drained: perfring's Ring, the floors it is held against and, where the
// kernel allows it, PerfBuffer and real libbpf. See README.md.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/bench/contenders.h"
#include "harness/bench/live_rings.h"
#include "harness/bench/options.h"
#include "harness/bench/race.h"
#include "harness/bench/report.h"
#include "harness/bench/workload.h"

namespace perfring::bench {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

// Ends the run after the line at hand. A wrapper may send the signal twice.
void on_signal(int) {
  stop_requested = 1;
}

// One line of the table.
struct Cell {
  Workload workload;
  Callback callback;

  std::string name() const {
    return ring_name(workload.ring_bytes) + "/" + payload_name(workload.mix) + "/" +
           (callback == Callback::Count ? "count" : "sum");
  }
};

// The rings of one cell. Google Benchmark calls run() several times to find out how often to
// iterate: the rings last until the next cell.
struct Arena {
  explicit Arena(const Cell& of) : cell{of}, memory{of.workload} {
    contenders = in_memory(cell.workload, memory, cell.callback);
  }

  Cell cell;
  FilledMemory memory;
  std::unique_ptr<LiveRings> live;
  std::vector<Contender> contenders;
};

void enter_live(Arena& arena) {
  static bool permitted = true;
  if (!permitted) return;
  auto live = LiveRings::filled(arena.cell.workload, arena.cell.callback);
  if (!live) {
    permitted = false;
    std::printf("The live kernel's rings are left out from here on: %s\n", live.error().c_str());
    return;
  }
  arena.live = std::make_unique<LiveRings>(*std::move(live));
  for (Contender& contender : arena.live->contenders()) {
    arena.contenders.push_back(std::move(contender));
  }
}

void run(benchmark::State& state, const Cell& cell) {
  static std::unique_ptr<Arena> arena;
  if (!arena || arena->cell.name() != cell.name()) {
    if (stop_requested != 0) {
      state.SkipWithError(kLeftOut);
      return;
    }
    arena.reset();
    arena = std::make_unique<Arena>(cell);
    enter_live(*arena);
  }
  Race race{arena->contenders, cell.workload.tally(cell.callback)};
  for (auto _ : state) race.round();
  if (race.wrong()) state.SkipWithError((*race.wrong() + " delivered other events").c_str());
  count(race, state.counters);
}

void register_cells() {
  for (const Callback callback : {Callback::Count, Callback::Sum}) {
    for (const std::size_t ring : measured_rings()) {
      for (const payload_mix& mix : measured_mixes()) {
        const Cell cell{Workload{ring, mix}, callback};
        benchmark::RegisterBenchmark(cell.name().c_str(), run, cell);
      }
    }
  }
}

// The process stays on one CPU: the kernel writes to the ring of the CPU that it runs on.
void pin() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof(one), &one);
}

int print(const Answer& answer) {
  std::fputs(answer.text.c_str(), answer.exit_code == 0 ? stdout : stderr);
  return answer.exit_code;
}

int main(int argc, char** argv) {
  auto parsed = parse(argc, argv);
  if (const auto* const answer = std::get_if<Answer>(&parsed)) return print(*answer);
  auto& options = std::get<Options>(parsed);
  for (const std::string& file : options.json) {
    if (!std::ofstream{file}) return print(usage_error("cannot write to '" + file + "'"));
  }
  std::vector<char*> arguments;
  for (std::string& argument : options.benchmark) arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (count > 1) return print(usage_error(std::string{"unknown argument '"} + arguments[1] + "'"));

  pin();
  register_cells();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  TableReporter reporter;
  JsonReporter json;
  const std::size_t matching =
      benchmark::RunSpecifiedBenchmarks(&reporter, options.json.empty() ? nullptr : &json);
  if (reporter.left_out() != 0) {
    std::printf("Interrupted: %zu lines are left out.\n", reporter.left_out());
  }
  if (matching == 0) return print(usage_error("no line matches --benchmark_filter"));
  if (reporter.wrong() != 0) return 1;
  return 0;
}

}  // namespace
}  // namespace perfring::bench

int main(int argc, char** argv) {
  return perfring::bench::main(argc, argv);
}
