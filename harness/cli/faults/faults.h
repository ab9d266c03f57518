#ifndef HARNESS_CLI_FAULTS_FAULTS_H_
#define HARNESS_CLI_FAULTS_FAULTS_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "harness/faults/fault_catalogue.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring faults`.
struct FaultsOptions {
  std::vector<std::string> names;  // empty: all faults
  std::string harness;             // empty: all harnesses
  bool json = false;
  bool markdown = false;
  bool list = false;
};

CLI::App& declare_command(CLI::App& app, FaultsOptions& options);
int run_command(const FaultsOptions& options);

// How a planted fault was found.
struct FoundFault {
  std::string as;  // an invariant's name, a data race, or the end of the run; empty: not found
  std::string message;
};

// The value of FoundFault::as if AddressSanitizer ended the run.
inline constexpr const char* kSanitizerReport = "a sanitizer's report";

bool has_planted(const faults::Fault& fault, faults::Harness harness);
// Plants a fault in a harness and runs the harness in this process. Preconditions: has_planted(),
// and this build can run it.
FoundFault look_for_fault(const faults::Fault& fault, faults::Harness harness);

// Returns the reason if this build cannot run the fault in that harness, otherwise "".
std::string not_run_because(const faults::Fault& fault, faults::Harness harness);

enum class CellVerdict { Found, Holds, Undetectable, NotPlanted, Missed, FoundOtherwise, NotRun };
const char* to_string(CellVerdict verdict);

// The result of one fault in one harness.
struct FaultCell {
  const faults::Fault* fault;
  faults::Harness harness;
  CellVerdict verdict;
  FoundFault found;
  std::string not_run;

  const faults::Expected& expected() const { return fault->in(harness); }
  bool is_wrong() const {
    return verdict == CellVerdict::Missed || verdict == CellVerdict::FoundOtherwise;
  }
};

// Compares what was found with the catalogue.
CellVerdict judge(const faults::Expected& expected, const FoundFault& found);
// The verdict for a fault that the harness does not plant. The catalogue must have a reason that
// allows this.
CellVerdict judge_unplanted(const faults::Expected& expected);

// Runs each cell in its own process, until all are done or `stop` is set.
std::vector<FaultCell> run_faults(const FaultsOptions& options, const std::atomic<bool>& stop,
                                  const std::function<void(const std::string& line)>& on_progress);

Conclusion conclusion_of(const std::vector<FaultCell>& cells, bool interrupted);

// --list: the catalogue.
std::string faults_list();
std::string faults_list_json();

std::string faults_table(const std::vector<FaultCell>& cells, const Conclusion& conclusion);
std::string faults_json(const std::vector<FaultCell>& cells, const Conclusion& conclusion);
std::string faults_markdown(const std::vector<FaultCell>& cells);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_FAULTS_FAULTS_H_
