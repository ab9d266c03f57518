#ifndef HARNESS_STRESS_REPORT_H_
#define HARNESS_STRESS_REPORT_H_

#include <span>
#include <string>

#include "harness/stress/run.h"

namespace perfring::stress {

// The verdict, as a table for a person and as JSON for a machine. Both hold the same figures. What
// is violated is to be had `again` by that line.
std::string verdict_table(std::span<const Outcome> outcomes, bool interrupted,
                          const std::string& again);
std::string verdict_json(std::span<const Outcome> outcomes, bool interrupted,
                         const std::string& again);

bool holds(std::span<const Outcome> outcomes);

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_REPORT_H_
