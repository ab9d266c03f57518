#include "harness/model/litmus/litmus_ops.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/model/litmus/litmus_json.h"
#include "harness/program/counted.h"

namespace perfring::model {
namespace {

using nlohmann::json;

constexpr std::size_t kOperationsMax = 10'000;  // of a thread: Bounds::steps

std::memory_order order_of(const std::string& name) {
  if (name == "rlx") return std::memory_order_relaxed;
  if (name == "acq") return std::memory_order_acquire;
  if (name == "rel") return std::memory_order_release;
  if (name == "ar") return std::memory_order_acq_rel;
  if (name == "sc") return std::memory_order_seq_cst;
  throw UsageError{"unknown order '" + name + "': na, rlx, acq, rel, ar or sc"};
}

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
        throw UsageError{fmt::format("operation {}: {}", entry.dump(), message_of(error))};
      }
    }
    return all;
  }

 private:
  static constexpr unsigned kDepthMax = 32;  // a thread's stack is small

  // An operand, of so many that the operation has.
  static const json& operand(const json& entry, std::size_t i, std::size_t operands) {
    if (entry.size() != operands + 1) {
      throw UsageError{fmt::format("operation {}: {}, not {}", entry.dump(),
                                   counted(entry.size() - 1, "operand"), operands)};
    }
    return entry.at(i);
  }
  static std::uint64_t value(const json& entry, std::size_t i) {
    try {
      return static_cast<std::uint64_t>(integer_of(entry.at(i)));
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

}  // namespace

std::vector<Op> read_ops(const json& list, const std::map<std::string, Var>& vars,
                         std::map<std::uint32_t, std::string>& registers) {
  return ThreadParser{vars, registers}.ops(list);
}

void run_ops(const std::vector<Op>& ops, std::uint64_t unset) {
  Registers registers;
  run_ops(ops, registers, unset);
}

}  // namespace perfring::model
