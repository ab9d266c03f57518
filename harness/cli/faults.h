#ifndef HARNESS_CLI_FAULTS_H_
#define HARNESS_CLI_FAULTS_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "harness/faults/catalogue.h"
#include "harness/program/verdict.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring faults`.
struct FaultsOptions {
  std::vector<std::string> names;  // of faults; none: all
  std::string harness;             // none: all
  bool json = false;
  bool markdown = false;
  bool list = false;
};

CLI::App& declare_command(CLI::App& app, FaultsOptions& options);

// The finding of a planted fault: the name of an invariant, a data race, or the end of the run; and
// the details.
struct FoundFault {
  std::string as;  // empty: it was not
  std::string message;
};

// In place of an invariant: AddressSanitizer has ended the run.
inline constexpr const char* kSanitizerReport = "a sanitizer's report";

bool has_planted(const faults::Fault& fault, faults::Harness harness);
// Plants a fault in a harness that has it and that this build can run, in this process, and looks
// for it.
FoundFault look_for_fault(const faults::Fault& fault, faults::Harness harness);

// Why this build cannot run it there; empty if it can.
std::string not_run_because(const faults::Fault& fault, faults::Harness harness);

enum class CellVerdict { Found, Holds, NotSeen, NotPlanted, Missed, FoundOtherwise, NotRun };
const char* to_string(CellVerdict verdict);

// A fault in a harness.
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

// Compares it with the catalogue.
CellVerdict judge(const faults::Expected& expected, const FoundFault& found);
// The same for a fault that the harness does not plant, which only some reasons allow.
CellVerdict judge_unplanted(const faults::Expected& expected);

// Each cell in a process of its own, until all are done or `stop` is set.
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

#endif  // HARNESS_CLI_FAULTS_H_
