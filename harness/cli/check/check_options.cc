#include "harness/cli/check/check.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <cstddef>
#include <string_view>

#include <algorithm>
#include <cstdint>

#include "harness/program/console.h"
#include "harness/program/options.h"

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

std::string choice_of(const std::string& name, const std::vector<model::ProgramFault>& faults) {
  std::vector<std::string> names;
  for (const model::ProgramFault& fault : faults) names.push_back(fault.name);
  return faults.empty() ? "it has no faults" : nearest_to(name, names, "perfring check --list");
}

std::expected<std::vector<Form>, std::string> forms_of(const CheckOptions& options,
                                                       const Entry& entry) {
  if (options.form.empty()) {
    return entry.has_forms ? std::vector{Form::A, Form::B} : std::vector{Form::A};
  }
  if (!entry.has_forms) {
    return std::unexpected(fmt::format("--form: {} has only one form: leave it out", entry.name));
  }
  return std::vector{options.form == "A" ? Form::A : Form::B};
}

bool on_machine(const CheckOptions& options) {
  return options.memory_model != model::MemoryModel::Rc11;
}

// Returns the form to run under --model. A machine's words are plain loads and stores without
// races: form A or, under LKMM, the kernel form.
std::expected<std::vector<Form>, std::string> form_on_machine(const CheckOptions& options,
                                                              const Entry& entry) {
  const auto refuse = [&](std::string_view what) {
    return std::unexpected(fmt::format("--model: {} {}", to_string(options.memory_model), what));
  };
  const bool lkmm = options.memory_model == model::MemoryModel::Lkmm;
  if (!entry.machine_size || (lkmm && !entry.has_kernel_form)) {
    return refuse(fmt::format("cannot run {}{}: choose {}", entry.name,
                              entry.machine_size ? "" : ", whose verdict is known only for RC11",
                              lkmm ? "protocol" : "ring, protocol or another ring/ program"));
  }
  const auto* const fault = entry.find_fault(options.fault);
  if (fault != nullptr && !fault->can_run_on(options.memory_model)) {
    return refuse(
        fmt::format("cannot run the fault {}: the kernel has no release fence", fault->name));
  }
  if (options.form == "B") return refuse("has only form A");
  if (options.merge || options.compare) {
    return refuse("cannot merge states: leave out --merge and --compare");
  }
  return std::vector{lkmm ? Form::Kernel : Form::A};
}

std::expected<model::Size, std::string> size_of(const CheckOptions& options, const Entry& entry,
                                                model::Size size) {
  size.records = options.records.value_or(size.records);
  size.drains = options.drains.value_or(size.drains);
  if (!options.lengths.empty()) size.lengths = options.lengths;
  for (const unsigned length : size.lengths) {
    if (length >= entry.length_min && length <= entry.length_max) continue;
    return std::unexpected(fmt::format("--lengths: '{}' is not accepted: give {} to {} {}, for {}",
                                       length, entry.length_min, entry.length_max,
                                       entry.length_unit, entry.name));
  }
  return size;
}

// Limited because the recursion takes stack for each event.
constexpr std::uint64_t kEventsMax = 5'000;

std::vector<const CLI::Option*> add_bounds(CLI::App& check, model::Bounds& bounds) {
  return {
      check.add_option("--events", bounds.events, "Bound: events in an execution [2000]")
          ->type_name("N")
          ->check(number_from(1, kEventsMax)),
      check.add_option("--executions", bounds.executions, "Bound: executions [100000000]")
          ->type_name("N")
          ->check(number_from(1, std::uint64_t{1} << 60)),
      check
          .add_option_function<std::uint64_t>(
              "--memory", [&bounds](std::uint64_t mib) { bounds.memory_bytes = mib << 20; },
              "Bound: memory for states [8192]")
          ->type_name("MIB")
          ->check(number_from(1, std::uint64_t{1} << 20)),
      check.add_option("--seconds", bounds.seconds, "Bound: time for each case [600]")
          ->type_name("S")
          ->check(seconds()),
  };
}

// Parses "3,2,4". The list is a single argument, because the program's name may follow it.
void add_lengths(CLI::App& check, std::vector<unsigned>& lengths) {
  const CLI::Validator is_length = number_from(1, 64);
  check
      .add_option_function<std::string>(
          "--lengths",
          [&lengths, is_length](const std::string& list) {
            for (std::size_t at = 0; at <= list.size();) {
              const std::size_t end = std::min(list.find(',', at), list.size());
              std::string each = list.substr(at, end - at);
              if (const std::string why = is_length(each); !why.empty()) {
                throw CLI::ValidationError("--lengths", why + ", with commas between them");
              }
              lengths.push_back(static_cast<unsigned>(std::stoul(each)));
              at = end + 1;
            }
            if (lengths.size() <= kRecordsMax) return;
            throw CLI::ValidationError("--lengths", fmt::format("more than {}", kRecordsMax));
          },
          "Record lengths, used in turn, such as 3,2,4")
      ->type_name("LIST");
}

const CLI::Option* add_memory_model(CLI::App& check, model::MemoryModel& chosen) {
  std::vector<std::string> names;
  for (const auto& each : model::kMemoryModels) names.emplace_back(each.name);
  return check
      .add_option_function<std::string>(
          "--model",
          [&chosen](const std::string& name) {
            chosen =
                std::ranges::find(model::kMemoryModels, name, &model::MemoryModelName::name)->model;
          },
          "Memory model: rc11, aarch64, riscv, or, for protocol and --litmus, lkmm [rc11]")
      ->type_name("MODEL")
      ->check(one_of(names));
}

}  // namespace

CLI::App& declare_command(CLI::App& app, CheckOptions& options) {
  CLI::App& check = *app.add_subcommand(
      "check",
      "Explores every execution of a small program that a memory model allows, and proves the\n"
      "program's checks or prints an execution that violates one. The programs include the source\n"
      "that ships, on a few records.");
  check.add_option("program", options.program, "The program to check, see --list [ring]")
      ->type_name("PROGRAM");
  check.add_option("--records", options.records, "Records that the kernel outputs")
      ->type_name("N")
      ->check(number_from(1, kRecordsMax));
  check.add_option("--drains", options.drains, "Drains that run concurrently")
      ->type_name("N")
      ->check(number_from(0, kRecordsMax));
  add_lengths(check, options.lengths);
  check.add_option("--fault", options.fault, "Plant this fault, see --list")->type_name("NAME");
  check
      .add_option("--form", options.form,
                  "A: the ring's words are atomic; B: they are not, and may race [both]")
      ->type_name("A|B")
      ->check(one_of({"A", "B"}));
  check.add_flag("--merge", options.merge, "Merge states with the same future");
  check.add_flag("--compare", options.compare, "Explore with and without merging, and compare");
  check
      .add_option(
          "--svg", options.svg,
          "Draw the violation, if any, to this file; - draws to stdout, with the verdict on stderr")
      ->type_name("FILE");
  const CLI::Option* const litmus =
      check
          .add_option(
              "--litmus", options.litmus,
              "Run the litmus tests in this file instead, and compare their outcomes; - for stdin")
          ->type_name("FILE");
  std::vector<const CLI::Option*> with_litmus = add_bounds(check, options.bounds);
  const CLI::Option* const fences = check.add_flag(
      "--fences", options.fences, "Print which fences are necessary and which are sufficient");
  const CLI::Option* const list =
      check.add_flag("--list", options.list, "List programs and faults, and exit");
  const CLI::Option* const json =
      check.add_flag("--json", options.json, "Print the verdict as JSON");
  with_litmus.push_back(json);
  with_litmus.push_back(add_memory_model(check, options.memory_model));
  // --litmus excludes --merge, because merged states lose their registers.
  refuse_other_options(check, {{litmus, with_litmus}, {fences}, {list, {json}}});
  return check;
}

std::expected<CheckPlan, std::string> plan_of(const CheckOptions& options) {
  CheckPlan plan;
  plan.merge = options.merge;
  plan.compare = options.compare;
  plan.svg = options.svg;
  plan.bounds = options.bounds;
  plan.memory_model = options.memory_model;
  plan.entry = model::find_entry(options.program);
  if (plan.entry == nullptr) {
    return std::unexpected(fmt::format("PROGRAM: {} is not accepted: give one of {}",
                                       in_quotes(options.program), names(model::catalogue())));
  }
  const Entry& entry = *plan.entry;
  if (!options.fault.empty()) {
    plan.fault = entry.find_fault(options.fault);
    if (plan.fault == nullptr) {
      return std::unexpected(fmt::format("--fault: {} is not accepted for {}: {}",
                                         in_quotes(options.fault), entry.name,
                                         choice_of(options.fault, entry.faults)));
    }
  }
  const auto forms =
      on_machine(options) ? form_on_machine(options, entry) : forms_of(options, entry);
  if (!forms) return std::unexpected(forms.error());
  plan.forms = *forms;
  if (!entry.size) {
    if (!options.records && !options.drains && options.lengths.empty()) return plan;
    return std::unexpected(fmt::format(
        "--records, --drains, --lengths: {} has a fixed size: leave them out", entry.name));
  }
  const auto size = size_of(options, entry,
                            on_machine(options)     ? *entry.machine_size
                            : plan.fault != nullptr ? *entry.fault_size
                                                    : *entry.size);
  if (!size) return std::unexpected(size.error());
  plan.size = *size;
  return plan;
}

}  // namespace perfring::cli
