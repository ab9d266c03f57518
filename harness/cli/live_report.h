#ifndef HARNESS_CLI_LIVE_REPORT_H_
#define HARNESS_CLI_LIVE_REPORT_H_

#include <string>

#include "harness/cli/live_run.h"
#include "harness/program/verdict.h"

namespace perfring::cli {

// "  1.5 s  4,210,331 events/s  12 lost/s  fill 25% 31%"
std::string progress_line(const LiveProgress& progress);

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures.
std::string verdict_table(const LiveOutcome& outcome);
std::string verdict_json(const LiveOutcome& outcome);

// Whether every invariant holds on every CPU, of at least one record each.
Conclusion conclusion_of(const LiveOutcome& outcome);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_LIVE_REPORT_H_
