#include "harness/cli/check_litmus.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "harness/model/litmus/litmus_run.h"
#include "harness/program/console.h"
#include "harness/program/counted.h"

namespace perfring::cli {
namespace {

using Result = CheckedLitmus::Result;

Result result_of(const model::Litmus& litmus, model::MemoryModel memory_model,
                 const model::LitmusVerdict& verdict) {
  if (!verdict.refused.empty()) {
    return litmus.not_expressible.contains(memory_model) ? Result::NotExpressible : Result::Refused;
  }
  if (!verdict.differences.empty()) return Result::Differs;
  if (!verdict.result.bound.empty()) return Result::NotShown;
  if (!verdict.compared) return Result::NothingExpected;
  return Result::Agrees;
}

const CheckedLitmus* first_refused(const CheckedLitmusFile& file) {
  const auto found = std::ranges::find(file.programs, Result::Refused, &CheckedLitmus::result);
  return found == file.programs.end() ? nullptr : &*found;
}

}  // namespace

std::expected<CheckedLitmusFile, std::string> run_litmus_text(const CheckOptions& options,
                                                              const std::string& text,
                                                              const std::atomic<bool>& stop,
                                                              const OnProgress& on_progress) {
  std::istringstream stream{text};
  std::vector<model::Litmus> all;
  try {
    all = model::read_litmus(stream);
  } catch (const model::UsageError& error) {
    return std::unexpected(
        fmt::format("--litmus: {}: {}", in_quotes(options.litmus), error.what()));
  }
  if (all.empty()) {
    return std::unexpected(
        fmt::format("--litmus: {} has no program: give at least one", in_quotes(options.litmus)));
  }
  CheckedLitmusFile checked{.memory_model = options.memory_model, .programs = {}};
  for (const model::Litmus& litmus : all) {
    const std::string& name = litmus.program.name;
    model::ExploreOptions how;
    how.bounds = options.bounds;
    how.stop = &stop;
    how.on_progress = [&](const model::Result& so_far) {
      on_progress(fmt::format("{} of {}, {}: {}", checked.programs.size() + 1, all.size(),
                              one_line(name), counted(so_far.executions, "execution")));
    };
    CheckedLitmus one{.name = name, .verdict = run_litmus(litmus, options.memory_model, how)};
    if (stop) interrupt(one.verdict.result);
    one.result = result_of(litmus, options.memory_model, one.verdict);
    checked.programs.push_back(std::move(one));
    if (stop) break;
  }
  return checked;
}

Conclusion conclusion_of(const CheckedLitmusFile& file) {
  bool violated = false, looked = false;
  std::vector<const model::Result*> results;
  for (const CheckedLitmus& each : file.programs) {
    violated = violated || each.result == Result::Differs;
    looked = looked || each.verdict.compared || each.result == Result::NotShown;
    results.push_back(&each.verdict.result);
  }
  std::string nothing;
  if (const CheckedLitmus* const refused = first_refused(file)) {
    nothing = fmt::format("{} cannot run program {}: {}", title(file.memory_model),
                          one_line(refused->name), one_line(refused->verdict.refused));
  } else if (!looked) {
    nothing = fmt::format("the file does not say what {} allows", title(file.memory_model));
  }
  return conclude_explorations(violated, results, std::move(nothing));
}

int exit_code(const CheckedLitmusFile& file) {
  const int code = perfring::exit_code(conclusion_of(file).verdict);
  return code != kViolated && first_refused(file) != nullptr ? kUsageOrEnvironment : code;
}

}  // namespace perfring::cli
