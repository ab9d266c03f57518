#ifndef HARNESS_CLI_CHECK_CHECK_H_
#define HARNESS_CLI_CHECK_CHECK_H_

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/trace.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/model_catalogue.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring check`, before plan_of() validates them.
struct CheckOptions {
  std::string program = "ring";
  std::optional<unsigned> records;
  std::optional<unsigned> drains;
  std::vector<unsigned> lengths;
  std::string fault;
  std::string form;    // A or B; empty: both
  std::string litmus;  // a file name
  std::string svg;     // a file name
  model::MemoryModel memory_model = model::MemoryModel::Rc11;
  bool merge = false;
  bool compare = false;
  bool list = false;
  bool fences = false;
  bool json = false;
  model::Bounds bounds;
};

CLI::App& declare_command(CLI::App& app, CheckOptions& options);
int run_command(const CheckOptions& options);

// The explorations that the options request.
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

// Validates the options. An error names the option and what it accepts.
std::expected<CheckPlan, std::string> plan_of(const CheckOptions& options);

// The result of exploring one program.
struct CheckedCase {
  std::string label;  // "form A, step 3"
  model::Result result;
  std::vector<std::string> differences;  // between merging and not merging, with --compare

  Verdict verdict() const;
};

// Combines the explorations with and without merging. The case is proved only if both prove it.
CheckedCase compared_case(std::string label, model::Comparison comparison);

using OnProgress = std::function<void(const std::string& line)>;

// Explores the plan's programs until one is violated or `stop` is set.
std::vector<CheckedCase> run_check(const CheckPlan& plan, const std::atomic<bool>& stop,
                                   const OnProgress& on_progress);
// Concludes from all cases. With a fault that the program can find, the run must have found it.
Conclusion conclusion_of(const CheckPlan& plan, const std::vector<CheckedCase>& cases);

// Marks the exploration as interrupted, so that it proves nothing. Litmus tests use it, too.
void interrupt(model::Result& result);
// Concludes from several explorations. If one of them was cut short or has no complete execution,
// the conclusion is "not shown", even if all the others hold. A nonempty `nothing` is another
// reason for "not shown".
Conclusion conclude_explorations(bool violated, const std::vector<const model::Result*>& results,
                                 std::string nothing);

// The verdict as a table and as JSON, with the same contents.
std::string check_table(const CheckPlan& plan, const std::vector<CheckedCase>& cases);
std::string check_json(const CheckPlan& plan, const std::vector<CheckedCase>& cases);

// --list: every program and its faults.
std::string check_list();
std::string check_list_json();

// Returns the trace of the violation, or nullptr if there is none.
const model::Trace* violation_of(const std::vector<CheckedCase>& cases);

// Draws the violation into the plan's file with Graphviz. An error says what is missing.
std::expected<void, std::string> write_svg(const CheckPlan& plan,
                                           const std::vector<CheckedCase>& cases);

// Returns a Markdown table of the ring protocol's fences: which are necessary, and which suffice.
// For each row it explores the source that ships, under RC11 (6 records, 3 drains) and under
// AArch64 and RISC-V (4 records, 2 drains), and the word-by-word protocol under LKMM (3 records, 3
// drains). The x86 column is not computed: it has herd7 7.58's verdicts on the same part of the
// protocol.
std::string fences_table();

// Runs `perfring check --litmus FILE`. Returns the exit code.
int run_litmus(const CheckOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_CHECK_H_
