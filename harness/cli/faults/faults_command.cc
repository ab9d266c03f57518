// `perfring faults`.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "harness/cli/faults/faults.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/oracle/invariant.h"
#include "harness/program/child_process.h"
#include "harness/program/console.h"
#include "harness/program/run_program.h"
#include "harness/program/sanitizers.h"
#include "harness/program/verdict.h"
#include "perfring/os/fd.h"

namespace perfring::cli {
namespace {

using faults::Fault;
using faults::Harness;

// The pipe for a cell's finding. The cell runs in a child process, because a fault may end it.
int report_to = -1;

// FoundFault::as if the system refused something that the cell needs, such as memory.
constexpr const char* kEnvironment = "the environment";

void report(const FoundFault& found) {
  write_all(report_to, found.as + "\n" + found.message);
}

// Runs in a fork of this process: a fault may end or hang it, and ThreadSanitizer reports a race
// again that it has already reported in another cell.
int look_and_report(const Fault& fault, Harness harness) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);
  try {
    report(look_for_fault(fault, harness));
  } catch (const std::bad_alloc& error) {
    report({kEnvironment, error.what()});
  } catch (const std::system_error& error) {
    report({kEnvironment, error.what()});
  } catch (const std::exception& error) {
    report({"an error", error.what()});
  }
  return 0;
}

constexpr std::chrono::minutes kPatience{5};  // a faulty consumer may never end

// Reads the child's report into `text` up to the end of the pipe. Returns false if it took too long
// or `stop` was set.
bool read_report(const os::Fd& reads, const std::atomic<bool>& stop, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!stop && std::chrono::steady_clock::now() < end) {
    pollfd fd{reads.get(), POLLIN, 0};
    if (::poll(&fd, 1, 100) <= 0) continue;
    char piece[4096];
    const ssize_t length = ::read(reads.get(), piece, sizeof(piece));
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return true;
    text.append(piece, static_cast<std::size_t>(length));
  }
  return false;
}

FoundFault look_in_a_process(const Fault& fault, Harness harness, const std::atomic<bool>& stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error{errno, std::generic_category(), "pipe2"};
  }
  const os::Fd reads{ends[0]};
  os::Fd writes{ends[1]};
  ForkedChild child{[&] {
    report_to = writes.get();
    return look_and_report(fault, harness);
  }};
  writes = os::Fd{};
  std::string text;
  const bool ended = read_report(reads, stop, text);
  if (!ended) child.kill();
  const int status = child.wait();
  if (!ended) return {"a run that did not end", ""};
  const std::size_t line = text.find('\n');
  if (line != std::string::npos) return {text.substr(0, line), text.substr(line + 1)};
  if (WIFSIGNALED(status)) return {fmt::format("signal {}", WTERMSIG(status)), ""};
  return {kSanitizerReport, fmt::format("exit code {}", WEXITSTATUS(status))};
}

FaultCell run_cell(const Fault& fault, Harness harness, const std::atomic<bool>& stop) {
  FaultCell cell{&fault, harness, CellVerdict::NotRun, {}, not_run_because(fault, harness)};
  if (!cell.not_run.empty()) return cell;
  if (!has_planted(fault, harness)) {
    cell.verdict = judge_unplanted(cell.expected());
    return cell;
  }
  cell.found = look_in_a_process(fault, harness, stop);
  if (cell.found.as == kEnvironment) {
    throw std::runtime_error{
        fmt::format("{} of {}: {}", to_string(harness), fault.name, cell.found.message)};
  }
  cell.verdict = judge(cell.expected(), cell.found);
  return cell;
}

bool is_one_of(std::string_view name, const faults::OneOf& some) {
  return std::ranges::any_of(oracle::invariants(), [&](oracle::Invariant each) {
    return some.has(each) && name == to_string(each);
  });
}

}  // namespace

const char* to_string(CellVerdict verdict) {
  switch (verdict) {
    case CellVerdict::Found:
      return "found";
    case CellVerdict::Holds:
      return "holds, as expected";
    case CellVerdict::Undetectable:
      return "undetectable";
    case CellVerdict::NotPlanted:
      return "not planted";
    case CellVerdict::Missed:
      return "missed";
    case CellVerdict::FoundOtherwise:
      return "found otherwise";
    case CellVerdict::NotRun:
      return "not run";
  }
  return "unknown";
}

CellVerdict judge(const faults::Expected& expected, const FoundFault& found) {
  const auto* const reason = std::get_if<faults::Reason>(&expected);
  if (reason != nullptr && *reason == faults::Reason::RaceByChance && found.as == "data race") {
    return CellVerdict::Undetectable;
  }
  if (found.as.empty()) {
    if (std::holds_alternative<faults::Holds>(expected)) return CellVerdict::Holds;
    return is_found(expected) ? CellVerdict::Missed : CellVerdict::Undetectable;
  }
  const auto* const some = std::get_if<faults::OneOf>(&expected);
  const bool as_expected =
      some != nullptr ? is_one_of(found.as, *some) : found.as == in_words(expected);
  // AddressSanitizer may end the run before any invariant is checked.
  const bool sanitized = found.as == kSanitizerReport && is_found(expected);
  return as_expected || sanitized ? CellVerdict::Found : CellVerdict::FoundOtherwise;
}

CellVerdict judge_unplanted(const faults::Expected& expected) {
  const auto* const reason = std::get_if<faults::Reason>(&expected);
  return reason != nullptr && is_not_planted(*reason) ? CellVerdict::NotPlanted
                                                      : CellVerdict::Missed;
}

std::vector<FaultCell> run_faults(const FaultsOptions& options, const std::atomic<bool>& stop,
                                  const std::function<void(const std::string&)>& on_progress) {
  std::vector<FaultCell> cells;
  for (const Fault& fault : faults::catalogue()) {
    if (!options.names.empty() && std::ranges::count(options.names, fault.name) == 0) continue;
    for (const Harness harness : faults::harnesses()) {
      if (!options.harness.empty() && options.harness != to_string(harness)) continue;
      on_progress(fmt::format("{}: {}", to_string(harness), fault.name));
      FaultCell cell = run_cell(fault, harness, stop);
      if (stop) return cells;
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

Conclusion conclusion_of(const std::vector<FaultCell>& cells, bool interrupted) {
  const bool none = std::ranges::all_of(cells, [](const FaultCell& cell) {
    return cell.verdict == CellVerdict::NotRun || cell.verdict == CellVerdict::NotPlanted;
  });
  return conclude(std::ranges::any_of(cells, &FaultCell::is_wrong), interrupted,
                  none ? "none of these faults is planted and run in this build" : "");
}

}  // namespace perfring::cli

#ifdef PERFRING_TSAN
// ThreadSanitizer's runtime calls this with its locks held (OutputReport, compiler-rt 19). When the
// thread's trace is full, instrumented code waits for one of these locks (TraceSwitchPartImpl). So
// neither this function nor its callees are instrumented (faults_test.sh checks this). The first
// race is enough.
extern "C" void __tsan_on_report(void*);
extern "C" __attribute__((disable_sanitizer_instrumentation)) void __tsan_on_report(void*) {
  if (perfring::cli::report_to < 0) return;
  static constexpr char kRace[] = "data race\n";
  ::syscall(SYS_write, perfring::cli::report_to, kRace, sizeof(kRace) - 1);
  ::syscall(SYS_exit_group, 0);
}
#endif

namespace perfring::cli {

int run_command(const FaultsOptions& options) {
  if (options.list) {
    return deliver(options.json ? faults_list_json() : faults_list(), kHolds, "the list");
  }
  std::vector<FaultCell> cells;
  bool interrupted = false;
  {
    const StopOnSignals stop;
    const ProgressLine line;
    std::chrono::steady_clock::time_point shown;
    cells = run_faults(options, stop.requested(), [&](const std::string& text) {
      const auto now = std::chrono::steady_clock::now();
      if (now - shown < std::chrono::milliseconds{500}) return;
      shown = now;
      line.show(text);
    });
    line.clear();
    interrupted = stop.requested();
  }
  const Conclusion conclusion = conclusion_of(cells, interrupted);
  const int code = exit_code(conclusion.verdict);
  if (options.markdown) return deliver(faults_markdown(cells), code, "the table");
  return deliver(options.json ? faults_json(cells, conclusion) : faults_table(cells, conclusion),
                 code);
}

}  // namespace perfring::cli
