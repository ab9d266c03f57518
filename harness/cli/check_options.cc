#include "harness/cli/check_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace perfring::cli {
namespace {

using model::Entry;
using model::Form;

constexpr unsigned kRecordsMax = 64;

template <class Named>
std::string names(const std::vector<Named>& all) {
  std::string text;
  for (const Named& named : all) text += fmt::format("{}{}", text.empty() ? "" : ", ", named.name);
  return text;
}

std::expected<std::vector<Form>, std::string> forms_of(const CheckOptions& options,
                                                       const Entry& entry) {
  if (options.form.empty()) {
    return entry.has_forms ? std::vector{Form::A, Form::B} : std::vector{Form::A};
  }
  if (!entry.has_forms) {
    return std::unexpected(fmt::format("--form: {} has one form only: leave it out", entry.name));
  }
  if (options.form == "A") return std::vector{Form::A};
  if (options.form == "B") return std::vector{Form::B};
  return std::unexpected(
      fmt::format("--form: '{}' is none: A (words are atomic) or B (they are not)", options.form));
}

std::expected<model::Size, std::string> size_of(const CheckOptions& options, const Entry& entry,
                                                model::Size size) {
  size.records = options.records.value_or(size.records);
  size.polls = options.polls.value_or(size.polls);
  if (size.records < 1 || size.records > kRecordsMax) {
    return std::unexpected(
        fmt::format("--records: {} is not accepted: 1 to {}", size.records, kRecordsMax));
  }
  if (size.polls > kRecordsMax) {
    return std::unexpected(
        fmt::format("--polls: {} is not accepted: 0 to {}", size.polls, kRecordsMax));
  }
  if (!options.lengths.empty()) size.lengths = options.lengths;
  for (const unsigned length : size.lengths) {
    if (length >= entry.length_min && length <= entry.length_max) continue;
    return std::unexpected(fmt::format("--lengths: {} is not accepted: {} to {} {}, for {}", length,
                                       entry.length_min, entry.length_max, entry.length_unit,
                                       entry.name));
  }
  return size;
}

}  // namespace

std::expected<CheckPlan, std::string> plan_of(const CheckOptions& options) {
  CheckPlan plan;
  plan.merge = options.merge;
  plan.compare = options.compare;
  plan.svg = options.svg;
  plan.bounds = options.bounds;
  plan.entry = model::find_entry(options.program);
  if (plan.entry == nullptr) {
    return std::unexpected(fmt::format("PROGRAM: '{}' is none; there are {}", options.program,
                                       names(model::catalogue())));
  }
  const Entry& entry = *plan.entry;
  if (!options.mutant.empty()) {
    plan.mutant = entry.find_mutant(options.mutant);
    if (plan.mutant == nullptr) {
      return std::unexpected(fmt::format("--mutant: {} has none named '{}'; there are {}",
                                         entry.name, options.mutant,
                                         entry.mutants.empty() ? "none" : names(entry.mutants)));
    }
  }
  const auto forms = forms_of(options, entry);
  if (!forms) return std::unexpected(forms.error());
  plan.forms = *forms;
  if (!entry.size) {
    if (!options.records && !options.polls && options.lengths.empty()) return plan;
    return std::unexpected(fmt::format(
        "--records, --polls, --lengths: {} has no size to choose: leave them out", entry.name));
  }
  const auto size =
      size_of(options, entry, plan.mutant != nullptr ? *entry.mutant_size : *entry.size);
  if (!size) return std::unexpected(size.error());
  plan.size = *size;
  return plan;
}

}  // namespace perfring::cli
