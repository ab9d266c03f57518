// write_svg() of check.h.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "harness/cli/check.h"
#include "harness/program/child_process.h"
#include "harness/program/console.h"
#include "harness/program/input.h"
#include "harness/program/run_program.h"

namespace perfring::cli {
namespace {

constexpr int kNotFound = 127;  // env(1)'s exit code for a program that is not in PATH

// A signal that is to end this program ends Graphviz, too.
Ended run_dot(const std::string& graph) {
  const StopOnSignals stop;
  Ended ended = ChildProcess{{"/usr/bin/env", "dot", "-Tsvg"}, graph}.wait(
      [&] { return stop.requested().load(); });
  if (stop.requested()) throw std::system_error{EINTR, std::generic_category(), "Graphviz's dot"};
  return ended;
}

std::expected<std::string, std::string> drawing_of(const std::string& graph) try {
  Ended dot = run_dot(graph);
  if (dot.exit_code == kNotFound) {
    return std::unexpected(
        "--svg: Graphviz's dot is not installed: ci/setup installs it (apt-get install graphviz)");
  }
  if (dot.exit_code == 0 && dot.out.contains("<svg")) return std::move(dot.out);
  return std::unexpected(fmt::format("--svg: Graphviz's dot ended with {} and printed no SVG: {}",
                                     dot.exit_code, in_quotes(dot.err)));
} catch (const std::system_error& error) {
  return std::unexpected(std::string{"--svg: "} + error.what());
}

// "program ring/nested, fault publishes_nested, form A, step 3"
std::string subject(const CheckPlan& plan, const CheckedCase& violated) {
  std::string text = "program " + plan.entry->name;
  if (plan.fault != nullptr) text += ", fault " + plan.fault->name;
  if (violated.label != plan.entry->name) text += ", " + violated.label;
  return text;
}

}  // namespace

// Opens the file only once there is a drawing: it may hold an earlier one, or be a device.
std::expected<void, std::string> write_svg(const CheckPlan& plan,
                                           const std::vector<CheckedCase>& cases) {
  const auto violated = std::ranges::find_if(
      cases, [](const CheckedCase& each) { return each.result.violation.has_value(); });
  if (violated == cases.end()) return {};
  const auto drawing =
      drawing_of(model::trace_dot(*violated->result.violation, subject(plan, *violated)));
  if (!drawing) return std::unexpected(drawing.error());
  return write_output("--svg", plan.svg, *drawing);
}

}  // namespace perfring::cli
