#ifndef HARNESS_STRESS_REPORT_H_
#define HARNESS_STRESS_REPORT_H_

#include <span>
#include <string>

#include "harness/stress/run.h"

namespace perfring::stress {

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures.
std::string verdict_table(std::span<const Outcome> outcomes, bool interrupted);
std::string verdict_json(std::span<const Outcome> outcomes, bool interrupted);

bool holds(std::span<const Outcome> outcomes);

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_REPORT_H_
