#include "harness/model/golden.h"

#include <fmt/format.h>

#include "harness/model/catalogue.h"
#include "harness/model/engine/explorer.h"

namespace perfring::model {
namespace {

// The first case that is violated.
std::string trace_text(const Entry& entry, Form form, const std::string& fault,
                       const std::string& what) {
  const Size size = (fault.empty() ? entry.size : entry.fault_size).value_or(Size{});
  for (const Case& each : entry.cases(size, form, fault)) {
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
    if (entry.shares_ring_faults) continue;
    for (const ProgramFault& fault : entry.faults) {
      if (!fault.fails_in_a && !fault.fails_in_b) continue;
      const Form form = fault.fails_in_a ? Form::A : Form::B;
      all[entry.name + ".txt"] +=
          fmt::format("=== {}\n{}", fault.name, trace_text(entry, form, fault.name, fault.what));
    }
  }
  return all;
}

}  // namespace perfring::model
