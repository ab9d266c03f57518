#include "harness/cli/diff.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/program/counted.h"

namespace perfring::cli {

Conclusion conclusion_of(const DiffReport& report) {
  const differential::CampaignOutcome& outcome = report.outcome;
  return conclude(outcome.finding.has_value(), report.interrupted,
                  outcome.compared.steps == 0 ? "no step was compared" : "");
}

std::string diff_text(const DiffReport& report) {
  const differential::Compared& compared = report.outcome.compared;
  const std::string equal =
      fmt::format("The simulated kernel equals the {} in all that was compared", report.kernel);
  const bool differs = report.outcome.finding.has_value();
  return (differs ? differential::explain(*report.outcome.finding, report.kernel) +
                        "  replay: " + report.replay + "\n"
                  : "") +
         fmt::format(
             "{}, {}, {:.1f} s: {} accepted ({} of them longer than header.size can say), {} "
             "refused; {}, of which {} found an event ready\n{}\n",
             counted(compared.scripts, "script"), counted(compared.steps, "step"), report.seconds,
             counted(compared.accepted, "output"), grouped(compared.truncated),
             grouped(compared.refused), counted(compared.waits, "wait"), grouped(compared.ready),
             differs ? "VIOLATED: the kernels differ" : sentence(conclusion_of(report), equal));
}

std::string diff_json(const DiffReport& report) {
  const differential::Compared& compared = report.outcome.compared;
  nlohmann::ordered_json json = to_json(conclusion_of(report));
  json["kernel"] = report.kernel;
  json["seconds"] = report.seconds;
  json["scripts"] = compared.scripts;
  json["steps"] = compared.steps;
  json["accepted"] = compared.accepted;
  json["refused"] = compared.refused;
  json["truncated"] = compared.truncated;
  json["waits"] = compared.waits;
  json["ready"] = compared.ready;
  if (report.outcome.finding) {
    const differential::Finding& finding = *report.outcome.finding;
    json["violation"] = {{"step", finding.difference.step},
                         {"message", finding.difference.what},
                         {"script", script::to_text(finding.script)}};
    if (finding.seed) json["violation"]["seed"] = *finding.seed;
  }
  return dump(json);
}

}  // namespace perfring::cli
