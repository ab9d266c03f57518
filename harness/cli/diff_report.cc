#include "harness/cli/diff.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/program/counted.h"

namespace perfring::cli {

Conclusion conclusion_of(const DiffReport& report) {
  const differential::CampaignOutcome& outcome = report.outcome;
  return conclude(outcome.finding.has_value(), report.interrupted,
                  outcome.tally.steps == 0 ? "no step was compared" : "");
}

std::string diff_text(const DiffReport& report) {
  const differential::Tally& tally = report.outcome.tally;
  const std::string equal =
      fmt::format("The simulated kernel equals the {} in all that was compared", report.kernel);
  const bool differs = report.outcome.finding.has_value();
  return (differs ? differential::explain(*report.outcome.finding, report.kernel) +
                        "  replay: " + report.replay + "\n"
                  : "") +
         fmt::format(
             "{}, {}, {:.1f} s: {} accepted ({} of them longer than header.size can say), {} "
             "refused; {}, of which {} reported\n{}\n",
             counted(tally.scripts, "script"), counted(tally.steps, "step"), report.seconds,
             counted(tally.accepted, "output"), grouped(tally.truncated), grouped(tally.refused),
             counted(tally.waits, "wait"), grouped(tally.reports),
             differs ? "VIOLATED: the kernels differ" : sentence(conclusion_of(report), equal));
}

std::string diff_json(const DiffReport& report) {
  const differential::Tally& tally = report.outcome.tally;
  nlohmann::ordered_json json = to_json(conclusion_of(report));
  json["kernel"] = report.kernel;
  json["seconds"] = report.seconds;
  json["scripts"] = tally.scripts;
  json["steps"] = tally.steps;
  json["accepted"] = tally.accepted;
  json["refused"] = tally.refused;
  json["truncated"] = tally.truncated;
  json["waits"] = tally.waits;
  json["reports"] = tally.reports;
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
