// How fast full rings are drained: perfring's Ring, the floors it is held against and, where the
// kernel allows it, PerfBuffer and real libbpf. See README.md.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/bench/contenders.h"
#include "harness/bench/live_rings.h"
#include "harness/bench/race.h"
#include "harness/bench/report.h"
#include "harness/bench/workload.h"

namespace perfring::bench {
namespace {

constexpr const char* kUsage =
    R"(usage: bazel run --config=opt //harness/bench:drain -- [options]

Drains full rings and prints ns per event: medians of turns taken in rotation.
  --json FILE                  also writes the figures to FILE (Google Benchmark's JSON, where
                               each contender and each ratio is a counter)
  --benchmark_filter=REGEX     only the matching lines, such as '^64K/8/count$'
  --benchmark_min_time=SECONDS the time for each line (default 0.3)
  --benchmark_list_tests=true  names the lines
  --help                       this text
and Google Benchmark's other --benchmark_ options.
Ctrl-C ends it after the line at hand.
Exit code: 0, or 1 if a contender delivered something else than was written, or 2 for wrong usage.
)";

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

int usage_error(const std::string& what) {
  std::fprintf(stderr, "drain: %s\n%s", what.c_str(), kUsage);
  return 2;
}

// Google Benchmark's argv in place of ours. The strings must last: `owned` keeps them.
int translate(int argc, char** argv, std::vector<std::string>& owned, bool& wants_json) {
  owned = {argv[0], "--benchmark_min_time=0.3"};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument != "--json") {
      owned.push_back(argument);
      continue;
    }
    if (++i == argc) return usage_error("--json wants a file");
    const std::string file = argv[i];
    wants_json = true;
    if (!std::ofstream{file}) return usage_error("cannot write to '" + file + "'");
    owned.push_back("--benchmark_out=" + file);
    owned.push_back("--benchmark_out_format=json");
  }
  return 0;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::fputs(kUsage, stdout);
      return 0;
    }
  }
  std::vector<std::string> owned;
  bool wants_json = false;
  if (const int code = translate(argc, argv, owned, wants_json); code != 0) return code;
  std::vector<char*> arguments;
  for (std::string& argument : owned) arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (count > 1) return usage_error(std::string{"unknown argument '"} + arguments[1] + "'");

  pin();
  register_cells();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  TableReporter reporter;
  JsonReporter json;
  const std::size_t matching =
      benchmark::RunSpecifiedBenchmarks(&reporter, wants_json ? &json : nullptr);
  if (reporter.left_out() != 0) {
    std::printf("Interrupted: %zu lines are left out.\n", reporter.left_out());
  }
  if (matching == 0) return usage_error("no line matches --benchmark_filter");
  if (reporter.wrong() != 0) return 1;
  return 0;
}

}  // namespace
}  // namespace perfring::bench

int main(int argc, char** argv) {
  return perfring::bench::main(argc, argv);
}
