#ifndef HARNESS_CLI_SIM_REPORT_H_
#define HARNESS_CLI_SIM_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "harness/cli/sim_options.h"
#include "harness/oracle/invariant.h"
#include "harness/program/verdict.h"
#include "harness/simulator/shrink.h"
#include "harness/simulator/simulation.h"

namespace perfring::cli {

// How a run ended; `shrunk` if it violated an invariant.
struct SimOutcome {
  simulator::Outcome outcome;
  std::optional<simulator::Shrunk> shrunk;
};

// The verdict of the run. With a fault: whether it was found.
Conclusion conclusion_of(const SimPlan& sim, const SimOutcome& result);

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures.
std::string sim_table(const SimPlan& sim, const SimOutcome& result);
std::string sim_json(const SimPlan& sim, const SimOutcome& result);
// The same as an object, for a report of many runs.
nlohmann::ordered_json sim_object(const SimPlan& sim, const SimOutcome& result);

// The invariant and the message.
nlohmann::ordered_json violation_object(const oracle::Violation& violation);

// All scenarios, faults and settings.
std::string sim_list();
std::string sim_list_json();

}  // namespace perfring::cli

#endif  // HARNESS_CLI_SIM_REPORT_H_
