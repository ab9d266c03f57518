// read_litmus() of litmus.h.

#include "harness/model/litmus/litmus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "harness/model/engine/usage_error.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"

namespace perfring::model {
namespace {

// `threads` (the program's source), `family` and `bad` are for people only.
constexpr std::array<std::string_view, 11> kFields = {
    "name",           "threads", "locations", "initial", "ops", "observed",
    "unset_register", "race",    "allowed",   "family",  "bad"};

struct ExpectationFields {
  MemoryModel model;
  const char* allowed;
  const char* executions;
};
// If a model has two rows, both must agree, and a count in one of them applies to both. LKMM's two
// rows are an exception: they describe two programs, because in allowed_lkmm_rmb smp_rmb() stands
// for an acquire fence. The first row that is not null counts.
constexpr std::array<ExpectationFields, 6> kExpectations = {
    {{MemoryModel::Rc11, "allowed", "genmc_executions"},
     {MemoryModel::Rc11, "allowed_rc11", "executions_rc11"},
     {MemoryModel::AArch64, "allowed_aarch64", "executions_aarch64"},
     {MemoryModel::RiscV, "allowed_riscv", "executions_riscv"},
     {MemoryModel::Lkmm, "allowed_lkmm", "executions_lkmm"},
     {MemoryModel::Lkmm, "allowed_lkmm_rmb", "executions_lkmm_rmb"}}};

bool has(const Json& entry, const char* name) {
  return entry.contains(name) && !entry.at(name).is_null();
}

// Returns a field of a program. Throws a UsageError with its name if it is missing or of another
// type.
template <class T>
T field(const Json& entry, const char* name) {
  if (!entry.contains(name)) throw UsageError{fmt::format("field '{}' is missing", name)};
  try {
    return entry.at(name).get<T>();
  } catch (const Json::exception& error) {
    throw UsageError{fmt::format("field '{}': {}", name, message_of(error))};
  }
}

std::int64_t integer_field(const Json& entry, const char* name, std::int64_t otherwise) {
  try {
    return entry.contains(name) ? integer_of(entry.at(name)) : otherwise;
  } catch (const UsageError& error) {
    throw UsageError{fmt::format("field '{}': {}", name, error.what())};
  }
}

// An observed location or thread must exist, but the register need not be assigned.
void check_observed(const std::string& name, const LitmusText& text) {
  const std::size_t colon = name.find(':');
  bool exists = std::ranges::find(text.locations, name) != text.locations.end();
  for (std::size_t i = 0; i < text.threads.size() && colon != std::string::npos; ++i) {
    exists = exists || name.substr(0, colon) == std::to_string(i);
  }
  if (!exists) {
    throw UsageError{fmt::format(
        "field 'observed': '{}' is neither a location nor a thread's register (1:r0)", name)};
  }
}

// Walks a thread's operations in order, and collects uses of unassigned registers.
class Assigned {
 public:
  Assigned(std::size_t thread, std::vector<std::string>& unassigned)
      : thread_{thread}, unassigned_{unassigned} {}

  void walk(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      if (op.reads()) {
        registers_.insert(op.reg);
      } else if (!op.reg.empty()) {
        use(op, op.reg);
      }
      for (const std::string& name : op.registers) use(op, name);
      walk(op.body);
    }
  }
  bool contains(const std::string& name) const { return registers_.contains(name); }

 private:
  void use(const Op& op, const std::string& name) {
    if (contains(name)) return;
    unassigned_.push_back(fmt::format(
        "thread {}, operation {}: no operation before it assigns '{}'", thread_, op.line, name));
  }

  std::size_t thread_;
  std::vector<std::string>& unassigned_;
  std::set<std::string> registers_;
};

std::vector<std::string> find_unassigned(const LitmusText& text) {
  std::vector<std::string> unassigned;
  for (std::size_t i = 0; i < text.threads.size(); ++i) {
    Assigned assigned{i, unassigned};
    assigned.walk(text.threads[i]);
    const std::string prefix = fmt::format("{}:", i);
    for (const std::string& name : text.observed) {
      if (name.starts_with(prefix) && !assigned.contains(name.substr(prefix.size()))) {
        unassigned.push_back(
            fmt::format("field 'observed': no operation of thread {} assigns '{}'", i, name));
      }
    }
  }
  return unassigned;
}

bool is_field(std::string_view name) {
  return std::ranges::find(kFields, name) != kFields.end() ||
         std::ranges::any_of(kExpectations, [&](const ExpectationFields& fields) {
           return name == fields.allowed || name == fields.executions;
         });
}

// Refuses unknown fields: a misspelled field would otherwise count as left out.
void check_fields(const Json& entry) {
  for (const auto& [name, value] : entry.items()) {
    if (is_field(name)) continue;
    std::vector<std::string_view> names{kFields.begin(), kFields.end()};
    for (const ExpectationFields& fields : kExpectations) {
      if (fields.allowed != std::string_view{"allowed"}) names.emplace_back(fields.allowed);
      names.emplace_back(fields.executions);
    }
    throw UsageError{fmt::format("unknown field '{}'; a program has {}", name.substr(0, 100),
                                 fmt::join(names, ", "))};
  }
}

LitmusText read_text(const Json& entry) {
  LitmusText text;
  text.name = field<std::string>(entry, "name");
  text.unset_register = integer_field(entry, "unset_register", 0);
  text.observed = field<std::vector<std::string>>(entry, "observed");
  text.initial = static_cast<std::uint64_t>(integer_field(entry, "initial", 0));
  for (const auto& [name, kind] : field<std::map<std::string, Json>>(entry, "locations")) {
    text.locations.push_back(name);
  }
  const auto threads = field<std::vector<Json>>(entry, "ops");
  if (threads.empty() || threads.size() > Program::kThreadsMax) {
    throw UsageError{fmt::format("field 'ops': {}; from 1 to {} are supported",
                                 counted(threads.size(), "thread"), Program::kThreadsMax)};
  }
  for (std::size_t i = 0; i < threads.size(); ++i) {
    try {
      text.threads.push_back(read_ops(threads[i], text.locations));
    } catch (const UsageError& error) {
      throw UsageError{fmt::format("field 'ops', thread {}: {}", i, error.what())};
    }
  }
  for (const std::string& name : text.observed) check_observed(name, text);
  return text;
}

std::set<LitmusOutcome> read_outcomes(const Json& entry, const char* name) {
  std::set<LitmusOutcome> outcomes;
  for (const auto& outcome : field<std::vector<std::map<std::string, Json>>>(entry, name)) {
    LitmusOutcome allowed;
    for (const auto& [observed, number] : outcome) {
      try {
        allowed[observed] = integer_of(number);
      } catch (const UsageError& error) {
        throw UsageError{fmt::format("field '{}', {}: {}", name, observed, error.what())};
      }
    }
    outcomes.insert(std::move(allowed));
  }
  return outcomes;
}

Expectation read_expectation(const Json& entry, const ExpectationFields& fields,
                             const std::vector<std::string>& observed) {
  Expectation expectation;
  if (has(entry, fields.allowed)) {
    expectation.allowed = read_outcomes(entry, fields.allowed);
    for (const LitmusOutcome& outcome : *expectation.allowed) {
      for (const auto& [name, value] : outcome) {
        if (std::ranges::find(observed, name) != observed.end()) continue;
        throw UsageError{
            fmt::format("field '{}': '{}' is not among 'observed'", fields.allowed, name)};
      }
    }
  }
  if (has(entry, fields.executions)) {
    const std::int64_t executions = integer_field(entry, fields.executions, 0);
    if (executions < 0)
      throw UsageError{fmt::format("field '{}': it is below 0", fields.executions)};
    expectation.executions = static_cast<std::uint64_t>(executions);
  }
  return expectation;
}

// Merges the values of two fields of the same memory model; throws UsageError if they differ.
template <class T>
void unite(std::optional<T>& known, std::optional<T>& other, const char* field) {
  if (!known) return std::swap(known, other);
  if (!other || *known == *other) return;
  throw UsageError{fmt::format(
      "field '{}' contradicts the field before it of the same memory model: leave one out", field)};
}

void read_expectations(const Json& entry, Litmus& litmus) {
  for (const ExpectationFields& fields : kExpectations) {
    if (has(entry, fields.allowed) || has(entry, fields.executions)) {
      Expectation read = read_expectation(entry, fields, litmus.text.observed);
      const auto [known, is_first] = litmus.expected.try_emplace(fields.model, read);
      litmus.not_expressible.erase(fields.model);
      if (is_first || fields.model == MemoryModel::Lkmm) continue;
      unite(known->second.allowed, read.allowed, fields.allowed);
      unite(known->second.executions, read.executions, fields.executions);
    } else if (entry.contains(fields.allowed)) {
      litmus.not_expressible.insert(fields.model);
    }
  }
}

Litmus read_one(const Json& entry) {
  Litmus litmus;
  check_fields(entry);
  const bool of_hardware = std::ranges::any_of(kExpectations, [&](const ExpectationFields& fields) {
    return fields.allowed != std::string_view{"allowed"} && entry.contains(fields.allowed);
  });
  litmus.race_given = entry.contains("race");
  litmus.race = litmus.race_given || !of_hardware ? field<bool>(entry, "race") : false;
  litmus.text = read_text(entry);
  litmus.unassigned = find_unassigned(litmus.text);
  litmus.program = program_of(litmus.text);
  read_expectations(entry, litmus);
  if (litmus.race) {
    litmus.expected.erase(MemoryModel::Rc11);  // RC11 gives the outcomes of a race no meaning
    return litmus;
  }
  if (litmus.expected.empty() && !of_hardware) throw UsageError{"field 'allowed' is missing"};
  return litmus;
}

}  // namespace

std::vector<Litmus> read_litmus(std::istream& file) {
  const Json parsed = parse_litmus_json(file);
  const bool wrapped = parsed.is_object() && parsed.contains("programs");
  const Json& programs = wrapped ? parsed.at("programs") : parsed;
  if (!programs.is_array()) {
    throw UsageError{"neither a list of litmus tests nor an object with such a list as 'programs'"};
  }
  std::vector<Litmus> all;
  for (const Json& entry : programs) {
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
