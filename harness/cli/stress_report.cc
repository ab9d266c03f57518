#include "harness/cli/stress.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/stress/faults.h"

namespace perfring::cli {
namespace {

constexpr const char* kRow = "{:>10} {:>8} {:>13} {:>13} {:>13} {:>11} {:>9} {:>9} {:>9}  {}\n";

double per_second(const stress::PartOutcome& outcome) {
  return outcome.seconds > 0 ? static_cast<double>(outcome.delivered) / outcome.seconds : 0;
}

std::string whole(double number) {
  return fmt::format("{:.0f}", number);
}

// Why a fault was not found, and what would find it.
std::string not_found(const stress::StressFault& fault) {
  const faults::Expected& expected = fault.expected(faults::Harness::Stress);
  if (is_found(expected)) {
    return fmt::format(
        "the fault {} was not found, which the invariants find in time: give more "
        "--seconds",
        fault.name);
  }
  if (!is_found(fault.expected(faults::Harness::ThreadSanitizer))) {
    return fmt::format("the fault {} was not found, and cannot be found here: {}", fault.name,
                       explanation(std::get<faults::Reason>(expected)));
  }
  return fmt::format(
      "the fault {} was not found by the invariants; ThreadSanitizer finds it: "
      "`bazel run --config=tsan //:perfring -- stress --fault {}`",
      fault.name, fault.name);
}

bool all_hold(std::span<const stress::PartOutcome> parts) {
  return std::ranges::all_of(parts, &stress::PartOutcome::holds);
}

}  // namespace

Conclusion conclusion_of(std::span<const stress::PartOutcome> parts, bool interrupted,
                         const std::string& fault) {
  std::string nothing;
  if (!fault.empty()) {
    nothing = not_found(*stress::find_planted(fault));
  } else if (parts.empty()) {
    nothing = "no part was run";
  }
  for (const stress::PartOutcome& part : parts) {
    if (part.delivered == 0 && nothing.empty()) {
      nothing = fmt::format("no record was delivered by the part {}", part.part);
    }
  }
  return conclude(!all_hold(parts), interrupted, nothing);
}

std::string stress_table(std::span<const stress::PartOutcome> parts, const Conclusion& conclusion,
                         const std::string& replay) {
  std::string table =
      fmt::format(kRow, "part", "rounds", "attempted", "delivered", "lost", "records/s", "woken",
                  "timed out", "in record", "attempted = delivered + lost");
  double seconds = 0;
  for (const stress::PartOutcome& part : parts) {
    table += fmt::format(kRow, part.part, part.rounds, part.attempted, part.delivered, part.lost,
                         whole(per_second(part)), part.woken, part.timed_out, part.killed_in_record,
                         part.attempted == part.delivered + part.lost ? "yes" : "NO");
    seconds += part.seconds;
  }
  for (const stress::PartOutcome& part : parts) {
    for (const std::string& violation : part.violations) {
      table += fmt::format("VIOLATED {}: {}\n", part.part, violation);
    }
  }
  if (!all_hold(parts)) table += "  replay: " + replay + "\n";
  return table +
         fmt::format("{} in {:.1f} s\n", sentence(conclusion, "All invariants hold"), seconds);
}

std::string stress_json(std::span<const stress::PartOutcome> parts, const Conclusion& conclusion,
                        const std::string& replay) {
  nlohmann::ordered_json json = to_json(conclusion);
  json["replay"] = replay;
  json["parts"] = nlohmann::ordered_json::array();
  for (const stress::PartOutcome& part : parts) {
    json["parts"].push_back({
        {"part", part.part},
        {"rounds", part.rounds},
        {"attempted", part.attempted},
        {"delivered", part.delivered},
        {"lost", part.lost},
        {"records_per_second", per_second(part)},
        {"woken", part.woken},
        {"timed_out", part.timed_out},
        {"killed_in_record", part.killed_in_record},
        {"seconds", part.seconds},
        {"violations", part.violations},
    });
  }
  return dump(json);
}

}  // namespace perfring::cli
