#ifndef HARNESS_CLI_DIFF_REPORT_H_
#define HARNESS_CLI_DIFF_REPORT_H_

#include <string>

#include "harness/differential/campaign.h"
#include "harness/program/verdict.h"

namespace perfring::cli {

struct DiffReport {
  const differential::CampaignOutcome& outcome;
  std::string kernel;  // what the simulated one was compared with: "live kernel"
  std::string replay;  // the command that shows a difference again
  double seconds;
  bool interrupted;
};

Conclusion conclusion_of(const DiffReport& report);

// The verdict, as text for a person and as JSON for a machine. Both hold the same figures.
std::string diff_text(const DiffReport& report);
std::string diff_json(const DiffReport& report);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_DIFF_REPORT_H_
