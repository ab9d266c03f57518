#ifndef HARNESS_CLI_CHECK_H_
#define HARNESS_CLI_CHECK_H_

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/catalogue.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/trace.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring check`, as given.
struct CheckOptions {
  std::string program = "ring";
  std::optional<unsigned> records;
  std::optional<unsigned> drains;
  std::vector<unsigned> lengths;
  std::string fault;
  std::string form;    // A or B; none: both
  std::string litmus;  // a file
  std::string svg;     // a file
  model::MemoryModel memory_model = model::MemoryModel::Rc11;
  bool merge = false;
  bool compare = false;
  bool list = false;
  bool fences = false;
  bool json = false;
  model::Bounds bounds;
};

CLI::App& declare_command(CLI::App& app, CheckOptions& options);

// The explorations that the options ask for.
struct CheckPlan {
  const model::Entry* entry = nullptr;
  const model::ProgramFault* fault = nullptr;
  std::optional<model::Size> size;
  std::vector<model::Form> forms;
  model::MemoryModel memory_model = model::MemoryModel::Rc11;
  bool merge = false;
  bool compare = false;
  std::string svg;
  model::Bounds bounds;
};

// An error names the option and what it accepts.
std::expected<CheckPlan, std::string> plan_of(const CheckOptions& options);

// One program that was explored.
struct CheckedCase {
  std::string label;  // "form A, step 3"
  model::Result result;
  std::vector<std::string> differences;  // of merging, if compared

  Verdict verdict() const;
};

// Explored with merging and without: what either of them does not prove is not proved.
CheckedCase compared_case(std::string label, model::Comparison comparison);

using OnProgress = std::function<void(const std::string& line)>;

// Explores the plan's programs until one does not hold, or `stop` is set.
std::vector<CheckedCase> run_check(const CheckPlan& plan, const std::atomic<bool>& stop,
                                   const OnProgress& on_progress);
// Their common conclusion. A fault that can be found must have been.
Conclusion conclusion_of(const CheckPlan& plan, const std::vector<CheckedCase>& cases);

// For litmus tests, too. An exploration that was interrupted proves nothing.
void interrupt(model::Result& result);
// An exploration that was cut short, or in which no execution is complete, shows nothing, even if
// all the others hold. `nothing` says why they show nothing, or is empty.
Conclusion conclude_explorations(bool violated, const std::vector<const model::Result*>& results,
                                 std::string nothing);

// The verdict, as a table for a person and as JSON for a machine. Both hold the same.
std::string check_table(const CheckPlan& plan, const std::vector<CheckedCase>& cases);
std::string check_json(const CheckPlan& plan, const std::vector<CheckedCase>& cases);

// Every program and its faults.
std::string check_list();
std::string check_list_json();

// The violation, or nullptr.
const model::Trace* violation_of(const std::vector<CheckedCase>& cases);

// Draws the violation into the plan's file, by Graphviz. An error says what is missing.
std::expected<void, std::string> write_svg(const CheckPlan& plan,
                                           const std::vector<CheckedCase>& cases);

// Prints which of the ring protocol's fences are necessary, and which suffice: a Markdown table.
// The source that ships is explored for each row, under RC11 (6 records, 3 drains), and under
// AArch64 and RISC-V (4 records, 2 drains); under LKMM the protocol word by word (3 records, 3
// drains). The column of x86 is herd7 7.58's verdicts on the same part of the protocol; they are
// not computed here.
std::string fences_table();

// `perfring check --litmus FILE`: the exit code.
int run_litmus(const CheckOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_H_
