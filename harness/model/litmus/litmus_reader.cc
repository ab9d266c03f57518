// read_litmus() of litmus.h.

#include "harness/model/litmus/litmus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "harness/model/litmus/litmus_json.h"
#include "harness/model/litmus/litmus_ops.h"
#include "harness/program/counted.h"

namespace perfring::model {
namespace {

using nlohmann::json;

// `threads`: the program's source, for people.
constexpr std::array<std::string_view, 10> kFields = {
    "name",     "threads",        "locations", "initial", "ops",
    "observed", "unset_register", "race",      "allowed", "genmc_executions"};

// A field of a program. Throws UsageError, with its name, for another type.
template <class T>
T field(const json& entry, const char* name) {
  if (!entry.contains(name)) throw UsageError{fmt::format("field '{}' is missing", name)};
  try {
    return entry.at(name).get<T>();
  } catch (const json::exception& error) {
    throw UsageError{fmt::format("field '{}': {}", name, message_of(error))};
  }
}

std::int64_t integer_field(const json& entry, const char* name, std::int64_t otherwise) {
  try {
    return entry.contains(name) ? integer_of(entry.at(name)) : otherwise;
  } catch (const UsageError& error) {
    throw UsageError{fmt::format("field '{}': {}", name, error.what())};
  }
}

// An observed location or thread must exist; the register need not be assigned.
void check_observed(const std::string& name, const std::map<std::string, Var>& vars,
                    std::size_t threads) {
  const std::size_t colon = name.find(':');
  bool exists = vars.contains(name);
  for (std::size_t i = 0; i < threads && colon != std::string::npos; ++i) {
    exists = exists || name.substr(0, colon) == std::to_string(i);
  }
  if (!exists) {
    throw UsageError{fmt::format(
        "field 'observed': '{}' is neither a location nor a thread's register (1:r0)", name)};
  }
}

// A field that is misspelt would be taken for one that is left out.
void check_fields(const json& entry) {
  for (const auto& [name, value] : entry.items()) {
    if (std::ranges::find(kFields, name) != kFields.end()) continue;
    throw UsageError{fmt::format("unknown field '{}'; a program has {}", name.substr(0, 100),
                                 fmt::join(kFields, ", "))};
  }
}

Litmus read_one(const json& entry) {
  Litmus litmus;
  check_fields(entry);
  litmus.program.name = field<std::string>(entry, "name");
  litmus.race = field<bool>(entry, "race");
  litmus.unset_register = integer_field(entry, "unset_register", 0);
  litmus.observed = field<std::vector<std::string>>(entry, "observed");
  const auto initial = static_cast<std::uint64_t>(integer_field(entry, "initial", 0));
  std::map<std::string, Var> vars;
  for (const auto& [name, kind] : field<json::object_t>(entry, "locations")) {
    vars[name] = litmus.program.var(name, initial);
  }
  const auto threads = field<std::vector<json>>(entry, "ops");
  if (threads.empty() || threads.size() > Program::kThreadsMax) {
    throw UsageError{fmt::format("field 'ops': {}; from 1 to {} are supported",
                                 counted(threads.size(), "thread"), Program::kThreadsMax)};
  }
  for (std::size_t i = 0; i < threads.size(); ++i) {
    auto& registers = litmus.registers.emplace_back();
    const auto ops = std::make_shared<std::vector<Op>>();
    try {
      *ops = read_ops(threads[i], vars, registers);
    } catch (const UsageError& error) {
      throw UsageError{fmt::format("field 'ops', thread {}: {}", i, error.what())};
    }
    const auto unset = static_cast<std::uint64_t>(litmus.unset_register);
    litmus.program.threads.emplace_back([ops, unset] { run_ops(*ops, unset); });
  }
  for (const std::string& name : litmus.observed) check_observed(name, vars, threads.size());
  if (litmus.race) return litmus;
  for (const auto& outcome : field<std::vector<std::map<std::string, json>>>(entry, "allowed")) {
    Outcome allowed;
    for (const auto& [observed, number] : outcome) {
      try {
        allowed[observed] = integer_of(number);
      } catch (const UsageError& error) {
        throw UsageError{fmt::format("field 'allowed', {}: {}", observed, error.what())};
      }
    }
    litmus.allowed.insert(std::move(allowed));
  }
  if (!entry.value("genmc_executions", json{}).is_null()) {
    const std::int64_t executions = integer_field(entry, "genmc_executions", 0);
    if (executions < 0) throw UsageError{"field 'genmc_executions': it is below 0"};
    litmus.executions = static_cast<std::uint64_t>(executions);
  }
  return litmus;
}

}  // namespace

std::vector<Litmus> read_litmus(std::istream& file) {
  const json programs = parse_litmus_json(file);
  if (!programs.is_array()) throw UsageError{"not a list of litmus tests"};
  std::vector<Litmus> all;
  for (const json& entry : programs) {
    const bool named = entry.is_object() && entry.contains("name") && entry.at("name").is_string();
    try {
      if (!entry.is_object()) throw UsageError{"not an object: " + entry.dump().substr(0, 100)};
      all.push_back(read_one(entry));
    } catch (const std::exception& error) {
      throw UsageError{fmt::format(
          "program {}: {}",
          named ? entry.at("name").get<std::string>() : fmt::format("number {}", all.size() + 1),
          error.what())};
    }
  }
  return all;
}

}  // namespace perfring::model
