// `perfring faults`.

#include <chrono>

#include "harness/cli/command_line.h"
#include "harness/cli/faults.h"
#include "harness/program/console.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

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
