// How fast full rings are drained: perfring's Ring, the floors it is held against and, where the
// kernel allows it, PerfBuffer and real libbpf. See README.md.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "harness/bench/contenders.h"
#include "harness/bench/live_rings.h"
#include "harness/bench/options.h"
#include "harness/bench/race.h"
#include "harness/bench/report.h"
#include "harness/bench/workload.h"
#include "harness/program/console.h"
#include "harness/program/input.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/os/fd.h"

namespace perfring::bench {
namespace {

const StopOnSignals* signals = nullptr;  // what run() asks, which Google Benchmark calls

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
    ProgressLine{}.keep("The live kernel's rings are left out from here on: " + live.error());
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
    if (signals->requested()) {
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

Conclusion conclusion_of(const TableReporter& reporter) {
  return conclude(reporter.wrong() != 0, reporter.left_out() != 0,
                  reporter.races() == 0 ? "no line was measured" : "");
}

// Google Benchmark ends the program by itself where it cannot read what the CPU is.
void ensure_descriptors() {
  constexpr std::size_t kNeeded = 8;
  std::vector<os::Fd> opened;
  while (opened.size() < kNeeded) {
    opened.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (opened.back().get() < 0) {
      throw std::system_error{errno, std::generic_category(), "opening files (ulimit -n)"};
    }
  }
}

int drain(int argc, char** argv) {
  auto parsed = parse_command_line(argc, argv);
  if (const auto* const answer = std::get_if<Answer>(&parsed)) {
    return answer->refused ? fail(answer->text) : deliver(answer->text, kHolds, "the help");
  }
  auto& options = std::get<Options>(parsed);
  std::vector<char*> arguments;
  for (std::string& argument : options.benchmark) arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());

  ensure_descriptors();
  pin();
  register_cells();
  const StopOnSignals stop;
  signals = &stop;
  TableReporter reporter{options.json != "-"};
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) {
    return fail("no line matches --benchmark_filter: --benchmark_list_tests names them");
  }
  const bool listed = reporter.races() + reporter.left_out() == 0;
  const Conclusion conclusion = conclusion_of(reporter);
  if (reporter.left_out() != 0) {
    tell(
        "Not shown: interrupted; " + std::to_string(reporter.left_out()) + " lines are left out.\n",
        kNotShown);
  }
  const bool names = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;  // Google Benchmark's
  if (const int error = names ? TableReporter::error() : errno; !names || error != 0) {
    return fail("the table cannot be written to stdout: " + std::generic_category().message(error));
  }
  if (listed) return kHolds;
  if (!options.json.empty()) {
    const auto written = write_output("--json", options.json, reporter.json(conclusion));
    if (!written) return fail(written.error());
  }
  return exit_code(conclusion.verdict);
}

}  // namespace
}  // namespace perfring::bench

int main(int argc, char** argv) {
  return perfring::run_program("drain", perfring::bench::drain, argc, argv);
}
