#include "harness/model/golden.h"

#include <fmt/format.h>

#include "harness/model/catalogue.h"
#include "harness/model/engine/explorer.h"

namespace perfring::model {
namespace {

// The first case that is violated.
std::string trace_text(const Entry& entry, Form form, const std::string& mutant,
                       const std::string& what) {
  const Size size = (mutant.empty() ? entry.size : entry.mutant_size).value_or(Size{});
  for (const Case& each : entry.cases(size, form, mutant)) {
    const Result result = explore_for_shortest(each.program);
    if (!result.violation) continue;
    return fmt::format("{}\n{}{}{}", what,
                       entry.has_forms ? (form == Form::A ? "form A" : "form B") : "",
                       each.label.empty() ? "\n" : ", " + each.label + "\n",
                       trace_table(*result.violation, false));
  }
  return what + "\nis not violated\n";
}

}  // namespace

std::map<std::string, std::string> golden_traces() {
  std::map<std::string, std::string> all;
  for (const Entry& entry : catalogue()) {
    if (entry.fails_in_a || entry.fails_in_b) {
      const Form form = entry.fails_in_a ? Form::A : Form::B;
      all[entry.name + ".txt"] += trace_text(entry, form, "", entry.what);
    }
    if (entry.shares_ring_mutants) continue;
    for (const Mutant& mutant : entry.mutants) {
      if (!mutant.fails_in_a && !mutant.fails_in_b) continue;
      const Form form = mutant.fails_in_a ? Form::A : Form::B;
      all[entry.name + ".txt"] +=
          fmt::format("=== {}\n{}", mutant.name, trace_text(entry, form, mutant.name, mutant.what));
    }
  }
  return all;
}

}  // namespace perfring::model
