#include "harness/stress/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace perfring::stress {
namespace {

constexpr const char* kRow = "{:>10} {:>8} {:>13} {:>13} {:>13} {:>11} {:>9} {:>9} {:>9}  {}\n";

double per_second(const Outcome& outcome) {
  return outcome.seconds > 0 ? static_cast<double>(outcome.delivered) / outcome.seconds : 0;
}

std::string whole(double number) {
  return fmt::format("{:.0f}", number);
}

}  // namespace

std::string verdict_table(std::span<const Outcome> outcomes, bool interrupted,
                          const std::string& again) {
  std::string table =
      fmt::format(kRow, "part", "rounds", "written", "delivered", "lost", "records/s", "woken",
                  "overslept", "cut short", "written = delivered + lost");
  double seconds = 0;
  for (const Outcome& part : outcomes) {
    table += fmt::format(kRow, part.part, part.rounds, part.written, part.delivered, part.lost,
                         whole(per_second(part)), part.woken, part.overslept, part.cut_short,
                         part.written == part.delivered + part.lost ? "yes" : "NO");
    seconds += part.seconds;
  }
  for (const Outcome& part : outcomes) {
    for (const std::string& violation : part.violations) {
      table += fmt::format("VIOLATED {}: {}\n", part.part, violation);
    }
  }
  if (!holds(outcomes)) table += "  again by: " + again + "\n";
  table += fmt::format("{} in {:.1f} s{}\n",
                       holds(outcomes) ? "All invariants hold" : "Invariants are violated", seconds,
                       interrupted ? " (interrupted)" : "");
  return table;
}

std::string verdict_json(std::span<const Outcome> outcomes, bool interrupted,
                         const std::string& again) {
  nlohmann::ordered_json json;
  json["holds"] = holds(outcomes);
  json["interrupted"] = interrupted;
  json["replay"] = again;
  json["parts"] = nlohmann::ordered_json::array();
  for (const Outcome& part : outcomes) {
    json["parts"].push_back({
        {"part", part.part},
        {"rounds", part.rounds},
        {"written", part.written},
        {"delivered", part.delivered},
        {"lost", part.lost},
        {"records_per_second", per_second(part)},
        {"woken", part.woken},
        {"overslept", part.overslept},
        {"cut_short", part.cut_short},
        {"seconds", part.seconds},
        {"violations", part.violations},
    });
  }
  return json.dump(2) + "\n";
}

bool holds(std::span<const Outcome> outcomes) {
  return std::ranges::all_of(outcomes, &Outcome::holds);
}

}  // namespace perfring::stress
