// read_litmus() of litmus.h.

#include "harness/model/litmus/litmus.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace perfring::model {
namespace {

using nlohmann::json;

constexpr int kListsMax = 256;                  // one in another
constexpr std::size_t kOperationsMax = 10'000;  // of a thread: Bounds::steps

// Without "[json.exception.type_error.302] ".
std::string without_prefix(const json::exception& error) {
  const std::string_view what = error.what();
  return std::string{what.substr(what.find(' ') + 1)};
}

// A field of a program, which says so if it is not what it should be.
template <class T>
T field(const json& entry, const char* name) {
  if (!entry.contains(name)) throw UsageError{fmt::format("field '{}' is missing", name)};
  try {
    return entry.at(name).get<T>();
  } catch (const json::exception& error) {
    throw UsageError{fmt::format("field '{}': {}", name, without_prefix(error))};
  }
}

// Not rounded, not cut off: what is misread could agree by chance.
std::int64_t integer(const json& number) {
  if (number.is_number_unsigned()) return static_cast<std::int64_t>(number.get<std::uint64_t>());
  if (number.is_number_integer()) return number.get<std::int64_t>();
  throw UsageError{fmt::format("{} is not an integer of 64 bits", number.dump())};
}
std::int64_t integer_field(const json& entry, const char* name, std::int64_t otherwise) {
  try {
    return entry.contains(name) ? integer(entry.at(name)) : otherwise;
  } catch (const UsageError& error) {
    throw UsageError{fmt::format("field '{}': {}", name, error.what())};
  }
}

std::memory_order order_of(const std::string& name) {
  if (name == "rlx") return std::memory_order_relaxed;
  if (name == "acq") return std::memory_order_acquire;
  if (name == "rel") return std::memory_order_release;
  if (name == "ar") return std::memory_order_acq_rel;
  if (name == "sc") return std::memory_order_seq_cst;
  throw UsageError{"unknown order '" + name + "': na, rlx, acq, rel, ar or sc"};
}

// One thread's operations, parsed. Each has a number, which stands for its line.
struct Op {
  std::string kind;
  std::string reg;
  Var var;
  std::uint64_t value = 0;
  bool atomic = true;
  std::memory_order order = std::memory_order_relaxed;
  Where where;  // line: its number
  std::vector<Op> body;
};

class ThreadParser {
 public:
  ThreadParser(const std::map<std::string, Var>& vars,
               std::map<std::uint32_t, std::string>& registers)
      : vars_{vars}, registers_{registers} {}

  std::vector<Op> ops(const json& list, unsigned depth = 0) {
    if (depth > kDepthMax) throw UsageError{fmt::format("more than {} IFs in another", kDepthMax)};
    if (!list.is_array()) throw UsageError{"operations are not a list: " + list.dump()};
    std::vector<Op> all;
    for (const json& entry : list) {
      try {
        all.push_back(op(entry, depth));
      } catch (const json::exception& error) {
        throw UsageError{fmt::format("operation {}: {}", entry.dump(), without_prefix(error))};
      }
    }
    return all;
  }

 private:
  static constexpr unsigned kDepthMax = 32;  // a thread's stack is small

  // An operand, of so many that the operation has.
  static const json& operand(const json& entry, std::size_t i, std::size_t operands) {
    if (entry.size() != operands + 1) {
      throw UsageError{fmt::format("operation {}: {} operands, not {}", entry.dump(),
                                   entry.size() - 1, operands)};
    }
    return entry.at(i);
  }
  static std::uint64_t value(const json& entry, std::size_t i) {
    try {
      return static_cast<std::uint64_t>(integer(entry.at(i)));
    } catch (const UsageError& error) {
      throw UsageError{fmt::format("operation {}: {}", entry.dump(), error.what())};
    }
  }

  // The orders that C++ has for an access. Those of fences are all but na.
  void set_order(Op& op, const json& name, const std::string& accepted) const {
    const auto order = name.get<std::string>();
    op.atomic = order != "na";
    if (op.atomic) op.order = order_of(order);
    if (op.kind != "F" && order == "sc") {
      throw UsageError{fmt::format(
          "operation {} is a sequentially consistent access, which is not supported: use a weaker "
          "one and sequentially consistent fences (orders: {})",
          op.kind, accepted)};
    }
    if ((' ' + accepted + ' ').find(' ' + order + ' ') == std::string::npos) {
      throw UsageError{fmt::format("operation {} has no order '{}': {}", op.kind, order, accepted)};
    }
  }

  Op op(const json& entry, unsigned depth) {
    Op op;
    op.kind = entry.at(0).get<std::string>();
    op.where = {++line_, "litmus"};
    if (line_ > kOperationsMax) {
      throw UsageError{fmt::format("more than {} operations", kOperationsMax)};
    }
    if (op.kind == "W") {
      op.var = var(operand(entry, 1, 3));
      op.value = value(entry, 2);
      set_order(op, entry.at(3), "na rlx rel");
    } else if (op.kind == "R") {
      static_cast<void>(operand(entry, 1, 3));
      op.reg = register_of(entry);
      op.var = var(entry.at(2));
      set_order(op, entry.at(3), "na rlx acq");
    } else if (op.kind == "F") {
      set_order(op, operand(entry, 1, 1), "acq rel ar sc");
    } else if (op.kind == "FA" || op.kind == "XC") {
      static_cast<void>(operand(entry, 1, 4));
      op.reg = register_of(entry);
      op.var = var(entry.at(2));
      op.value = value(entry, 3);
      set_order(op, entry.at(4), "rlx acq rel ar");
    } else if (op.kind == "IF") {
      static_cast<void>(operand(entry, 1, 3));
      op.reg = register_of(entry);
      op.value = value(entry, 2);
      op.body = ops(entry.at(3), depth + 1);
      return op;
    } else {
      throw UsageError{"unknown operation '" + op.kind + "': W, R, F, FA, XC or IF"};
    }
    if (!op.reg.empty()) registers_[op.where.line] = op.reg;
    return op;
  }

  static std::string register_of(const json& entry) {
    auto name = entry.at(1).get<std::string>();
    if (name.empty()) throw UsageError{"operation " + entry.dump() + ": its register has no name"};
    return name;
  }

  Var var(const json& name) const {
    const auto found = vars_.find(name.get<std::string>());
    if (found == vars_.end()) throw UsageError{"unknown location " + name.dump()};
    return found->second;
  }

  const std::map<std::string, Var>& vars_;
  std::map<std::uint32_t, std::string>& registers_;
  std::uint32_t line_ = 0;
};

using Registers = std::map<std::string, std::uint64_t>;

void run_ops(const std::vector<Op>& ops, Registers& registers, std::uint64_t unset) {
  for (const Op& op : ops) {
    if (op.kind == "W") {
      op.atomic ? op.var.store(op.value, op.order, op.where) : op.var.write(op.value, op.where);
    } else if (op.kind == "R") {
      registers[op.reg] = op.atomic ? op.var.load(op.order, op.where) : op.var.read(op.where);
    } else if (op.kind == "F") {
      fence(op.order, op.where);
    } else if (op.kind == "FA") {
      registers[op.reg] = op.var.fetch_add(op.value, op.order, op.where);
    } else if (op.kind == "XC") {
      registers[op.reg] = op.var.exchange(op.value, op.order, op.where);
    } else {  // IF
      const auto found = registers.find(op.reg);
      if ((found == registers.end() ? unset : found->second) == op.value) {
        run_ops(op.body, registers, unset);
      }
    }
  }
}

// What is observed exists, except that a register need not be assigned.
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

Litmus read_one(const json& entry) {
  Litmus litmus;
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
    throw UsageError{fmt::format("field 'ops': {} threads; from 1 to {} are supported",
                                 threads.size(), Program::kThreadsMax)};
  }
  for (std::size_t i = 0; i < threads.size(); ++i) {
    auto& registers = litmus.registers.emplace_back();
    const auto ops = std::make_shared<std::vector<Op>>();
    try {
      *ops = ThreadParser{vars, registers}.ops(threads[i]);
    } catch (const UsageError& error) {
      throw UsageError{fmt::format("field 'ops', thread {}: {}", i, error.what())};
    }
    const auto unset = static_cast<std::uint64_t>(litmus.unset_register);
    litmus.program.threads.emplace_back([ops, unset] {
      Registers values;
      run_ops(*ops, values, unset);
    });
  }
  for (const std::string& name : litmus.observed) check_observed(name, vars, threads.size());
  if (litmus.race) return litmus;
  for (const auto& outcome : field<std::vector<std::map<std::string, json>>>(entry, "allowed")) {
    Outcome allowed;
    for (const auto& [observed, number] : outcome) {
      try {
        allowed[observed] = integer(number);
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
  json programs;
  try {
    // Whatever is printed of a list in an error is printed by recursion.
    programs = json::parse(file, [](int depth, json::parse_event_t, const json&) {
      if (depth > kListsMax) throw UsageError{fmt::format("nested deeper than {}", kListsMax)};
      return true;
    });
  } catch (const json::exception& error) {
    throw UsageError{"not JSON: " + without_prefix(error)};
  }
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
