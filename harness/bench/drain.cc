// Measures how fast full rings are drained: by perfring's Ring, by the floors with which it is
// compared and, if the kernel permits, by PerfBuffer and real libbpf. See README.md.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <regex.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "harness/bench/bench_options.h"
#include "harness/bench/bpf_args.h"
#include "harness/bench/contenders.h"
#include "harness/bench/google_benchmark.h"
#include "harness/bench/race.h"
#include "harness/bench/report.h"
#include "harness/bench/workload.h"
#include "harness/program/affinity.h"
#include "harness/program/console.h"
#include "harness/program/options.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/os/fd.h"

namespace perfring::bench {
namespace {

const StopOnSignals* signals = nullptr;  // checked by run(), which Google Benchmark calls

// One line of the table.
struct Cell {
  std::size_t ring_bytes;
  payload_mix mix;
  Callback callback;

  std::string name() const {
    return ring_name(ring_bytes) + "/" + payload_name(mix) + "/" +
           (callback == Callback::Count ? "count" : "sum");
  }
};

// The rings of one cell. Google Benchmark calls run() several times to find the number of
// iterations, so the rings last until the next cell.
struct Arena {
  explicit Arena(const Cell& of)
      : cell{of}, workload{of.ring_bytes, of.mix}, memory{filled_ring(workload)} {
    contenders = in_memory(workload, memory, cell.callback);
    for (Contender& contender : in_memory_at_o2(workload, memory, cell.callback)) {
      contenders.push_back(std::move(contender));
    }
  }

  Cell cell;
  Workload workload;
  MappedRing memory;
  std::unique_ptr<LiveRings> live;
  std::vector<Contender> contenders;
};

void enter_live(Arena& arena) {
  static bool permitted = true;
  if (!permitted) return;
  auto live = LiveRings::filled(arena.workload, arena.cell.callback);
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
  Race race{arena->contenders, arena->workload.tally(cell.callback)};
  for (auto _ : state) race.round();
  if (race.wrong()) state.SkipWithError((*race.wrong() + " delivered other events").c_str());
  count(race, state.counters);
}

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const Callback callback : {Callback::Count, Callback::Sum}) {
    for (const std::size_t ring : measured_rings()) {
      for (const payload_mix& mix : measured_mixes()) {
        cells.push_back({ring, mix, callback});
      }
    }
  }
  return cells;
}

// Filters with regcomp(): Google Benchmark's std::regex may use up the stack, or never end.
std::expected<std::vector<Cell>, std::string> cells_of(const std::string& filter) {
  regex_t regex;
  if (const int error = ::regcomp(&regex, filter.c_str(), REG_EXTENDED | REG_NOSUB); error != 0) {
    std::array<char, 200> why{};
    ::regerror(error, &regex, why.data(), why.size());
    return std::unexpected(fmt::format("--benchmark_filter: {} is not a regular expression: {}",
                                       in_quotes(filter), why.data()));
  }
  std::vector<Cell> cells = all_cells();
  std::erase_if(cells, [&regex](const Cell& cell) {
    return ::regexec(&regex, cell.name().c_str(), 0, nullptr, 0) != 0;
  });
  ::regfree(&regex);
  if (!cells.empty()) return cells;
  return std::unexpected(
      fmt::format("no line matches --benchmark_filter {}: --benchmark_list_tests lists them",
                  in_quotes(filter)));
}

int list(const std::vector<Cell>& cells) {
  std::string names;
  for (const Cell& cell : cells) names += cell.name() + "\n";
  return deliver(names, kHolds, "the list");
}

// Google Benchmark reads options from BENCHMARK_* before main(), and may end the program over them.
// Restarts the program without these variables. Returns the exit code if that fails.
std::optional<int> forget_environment(char** argv) {
  std::vector<std::string> names;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    if (!variable.starts_with("BENCHMARK_")) continue;
    names.emplace_back(variable.substr(0, variable.find('=')));
  }
  if (names.empty()) return std::nullopt;
  for (const std::string& name : names) ::unsetenv(name.c_str());
  ::execv("/proc/self/exe", argv);
  return fail(fmt::format("the environment has {}: unset it", names.front()));
}

// Keeps the process on one CPU: the kernel writes to the ring of the CPU on which it runs.
void pin() {
  run_on(static_cast<std::uint32_t>(sched_getcpu()));
}

Conclusion conclusion_of(const TableReporter& reporter) {
  return conclude(reporter.wrong() != 0, reporter.left_out() != 0,
                  reporter.races() == 0 ? "no line was measured" : "");
}

// Google Benchmark ends the program if it cannot read what the CPU is.
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

// Google Benchmark keeps the pointer to the program's name.
void initialize_benchmark(char* program, const DrainOptions& options) {
  std::string time = "--benchmark_min_time=" + min_time(options.min_time);
  std::string repetitions = fmt::format("--benchmark_repetitions={}", options.repetitions);
  std::array<char*, 4> arguments{program, time.data(), repetitions.data(), nullptr};
  int count = static_cast<int>(arguments.size()) - 1;
  benchmark::Initialize(&count, arguments.data());
}

int drain(int argc, char** argv) {
  auto parsed = parse_drain(argc, argv);
  if (const auto* const answer = std::get_if<Answer>(&parsed)) return print_answer(*answer);
  const auto& options = std::get<DrainOptions>(parsed);
  const auto cells = cells_of(options.filter);
  if (!cells) return fail(cells.error());
  if (options.list) return list(*cells);
  if (const auto failed = forget_environment(argv)) return *failed;
  initialize_benchmark(argv[0], options);
  ensure_descriptors();
  pin();
  for (const Cell& cell : *cells) {
    benchmark::RegisterBenchmark(cell.name().c_str(), run, cell);
  }
  const StopOnSignals stop;
  signals = &stop;
  TableReporter reporter{options.json != "-"};
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const Conclusion conclusion = conclusion_of(reporter);
  if (reporter.left_out() != 0) {
    deliver_to_stderr("Not shown: interrupted; " + std::to_string(reporter.left_out()) +
                          " lines were left out.\n",
                      kNotShown);
  }
  if (const int error = TableReporter::error(); error != 0) {
    return fail("the table cannot be written to stdout: " + std::generic_category().message(error));
  }
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
