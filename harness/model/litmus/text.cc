#include "harness/model/litmus/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/model/engine/usage_error.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"

namespace perfring::model {
namespace {

using Kind = Op::Kind;
using Order = Op::Order;

constexpr std::size_t kOperationsMax = 10'000;  // per thread, as in Bounds::steps

struct KindName {
  Kind kind;
  std::string_view name;
  std::size_t operands;
};
constexpr std::array<KindName, 11> kKinds = {{{Kind::Write, "W", 3},
                                              {Kind::WriteRegister, "WR", 2},
                                              {Kind::Read, "R", 3},
                                              {Kind::Fence, "F", 1},
                                              {Kind::FetchAdd, "FA", 4},
                                              {Kind::Exchange, "XC", 4},
                                              {Kind::CompareExchange, "CX", 6},
                                              {Kind::If, "IF", 3},
                                              {Kind::Control, "CTRL", 1},
                                              {Kind::Assume, "ASSUME", 2},
                                              {Kind::Checkpoint, "CP", 1}}};

struct OrderName {
  Order order;
  std::string_view name;
};
constexpr std::array<OrderName, 7> kOrders = {{{Order::NonAtomic, "na"},
                                               {Order::Relaxed, "rlx"},
                                               {Order::Acquire, "acq"},
                                               {Order::Release, "rel"},
                                               {Order::AcquireRelease, "ar"},
                                               {Order::SequentiallyConsistent, "sc"},
                                               {Order::StoreStore, "wmb"}}};

const KindName& kind_of(const std::string& name) {
  const auto* const found = std::ranges::find(kKinds, name, &KindName::name);
  if (found != kKinds.end()) return *found;
  throw UsageError{"unknown operation '" + name +
                   "': W, WR, R, F, FA, XC, CX, IF, CTRL, ASSUME or CP"};
}

std::string_view name_of(Kind kind) {
  return std::ranges::find(kKinds, kind, &KindName::kind)->name;
}
std::string_view name_of(Order order) {
  return std::ranges::find(kOrders, order, &OrderName::order)->name;
}

class ThreadParser {
 public:
  explicit ThreadParser(const std::vector<std::string>& locations) : locations_{locations} {}

  std::vector<Op> ops(const Json& list, unsigned depth = 0) {
    if (depth > kDepthMax) throw UsageError{fmt::format("more than {} IFs in another", kDepthMax)};
    if (!list.is_array()) throw UsageError{"operations are not a list: " + list.dump()};
    std::vector<Op> all;
    for (const Json& entry : list) {
      try {
        all.push_back(op(entry, depth));
      } catch (const Json::exception& error) {
        throw UsageError{fmt::format("operation {}: {}", entry.dump(), message_of(error))};
      }
    }
    return all;
  }

 private:
  static constexpr unsigned kDepthMax = 32;  // a thread's stack is small

  static std::uint64_t value(const Json& entry, std::size_t i) {
    try {
      return static_cast<std::uint64_t>(integer_of(entry.at(i)));
    } catch (const UsageError& error) {
      throw UsageError{fmt::format("operation {}: {}", entry.dump(), error.what())};
    }
  }

  // `accepted`: the orders that C++ has for such an access.
  static Order order(std::string_view operation, const Json& name, std::string_view accepted) {
    const auto order = name.get<std::string>();
    const auto* const found = std::ranges::find(kOrders, order, &OrderName::name);
    if (found == kOrders.end()) {
      throw UsageError{"unknown order '" + order + "': na, rlx, acq, rel, ar, sc or wmb"};
    }
    if (operation != "F" && order == "sc") {
      throw UsageError{fmt::format(
          "operation {} is a sequentially consistent access, which is not supported: use a weaker "
          "one and sequentially consistent fences (orders: {})",
          operation, accepted)};
    }
    if (fmt::format(" {} ", accepted).find(fmt::format(" {} ", order)) == std::string::npos) {
      throw UsageError{
          fmt::format("operation {} has no order '{}': {}", operation, order, accepted)};
    }
    return found->order;
  }

  Op op(const Json& entry, unsigned depth) {
    const KindName kind = kind_of(entry.at(0).get<std::string>());
    if (entry.size() != kind.operands + 1) {
      throw UsageError{fmt::format("operation {}: {}, not {}", entry.dump(),
                                   counted(entry.size() - 1, "operand"), kind.operands)};
    }
    Op op;
    op.kind = kind.kind;
    op.line = ++line_;
    if (line_ > kOperationsMax) {
      throw UsageError{fmt::format("more than {} operations", kOperationsMax)};
    }
    read_operands(op, entry, kind.name, depth);
    return op;
  }

  void read_operands(Op& op, const Json& entry, std::string_view name, unsigned depth) {
    constexpr std::string_view kOfUpdates = "rlx acq rel ar";
    switch (op.kind) {
      case Kind::Write:
        op.location = location(entry.at(1));
        op.value = value(entry, 2);
        op.order = order(name, entry.at(3), "na rlx rel");
        return;
      case Kind::WriteRegister:
        op.location = location(entry.at(1));
        op.reg = register_of(entry, 2);
        return;
      case Kind::Read:
        op.reg = register_of(entry, 1);
        op.location = location(entry.at(2));
        op.order = order(name, entry.at(3), "na rlx acq");
        return;
      case Kind::Fence:
        op.order = order(name, entry.at(1), "acq rel ar sc wmb");
        return;
      case Kind::FetchAdd:
      case Kind::Exchange:
        op.reg = register_of(entry, 1);
        op.location = location(entry.at(2));
        op.value = value(entry, 3);
        op.order = order(name, entry.at(4), kOfUpdates);
        return;
      case Kind::CompareExchange:
        op.reg = register_of(entry, 1);
        op.location = location(entry.at(2));
        op.expected = value(entry, 3);
        op.value = value(entry, 4);
        op.order = order(name, entry.at(5), kOfUpdates);
        op.failure = order(name, entry.at(6), "rlx acq");
        return;
      case Kind::If:
        op.reg = register_of(entry, 1);
        op.value = value(entry, 2);
        op.body = ops(entry.at(3), depth + 1);
        return;
      case Kind::Control:
        op.reg = register_of(entry, 1);
        return;
      case Kind::Assume:
        op.reg = register_of(entry, 1);
        op.value = value(entry, 2);
        return;
      case Kind::Checkpoint:
        op.registers = entry.at(1).get<std::vector<std::string>>();
        return;
    }
  }

  static std::string register_of(const Json& entry, std::size_t i) {
    auto name = entry.at(i).get<std::string>();
    if (name.empty()) throw UsageError{"operation " + entry.dump() + ": its register has no name"};
    return name;
  }

  std::uint16_t location(const Json& name) const {
    const auto found = std::ranges::find(locations_, name.get<std::string>());
    if (found == locations_.end()) throw UsageError{"unknown location " + name.dump()};
    return static_cast<std::uint16_t>(found - locations_.begin());
  }

  const std::vector<std::string>& locations_;
  std::uint32_t line_ = 0;
};

Json op_json(const Op& op, const std::vector<std::string>& locations) {
  const std::string kind{name_of(op.kind)};
  const std::string order{name_of(op.order)};
  const auto at = [&] { return locations.at(op.location); };
  const auto value = static_cast<std::int64_t>(op.value);
  switch (op.kind) {
    case Kind::Write:
      return {kind, at(), value, order};
    case Kind::WriteRegister:
      return {kind, at(), op.reg};
    case Kind::Read:
      return {kind, op.reg, at(), order};
    case Kind::Fence:
      return {kind, order};
    case Kind::FetchAdd:
    case Kind::Exchange:
      return {kind, op.reg, at(), value, order};
    case Kind::CompareExchange:
      return {kind,
              op.reg,
              at(),
              static_cast<std::int64_t>(op.expected),
              value,
              order,
              std::string{name_of(op.failure)}};
    case Kind::If:
      return {kind, op.reg, value, ops_json(op.body, locations)};
    case Kind::Control:
      return {kind, op.reg};
    case Kind::Assume:
      return {kind, op.reg, value};
    case Kind::Checkpoint:
      return Json::array({kind, op.registers});
  }
  return {};
}

}  // namespace

std::vector<Op> read_ops(const Json& list, const std::vector<std::string>& locations) {
  return ThreadParser{locations}.ops(list);
}

Json ops_json(const std::vector<Op>& ops, const std::vector<std::string>& locations) {
  Json all = Json::array();
  for (const Op& op : ops) all.push_back(op_json(op, locations));
  return all;
}

std::string text_json(const LitmusText& text) {
  Json locations = Json::object();
  for (const std::string& name : text.locations) locations[name] = "";
  Json threads = Json::array();
  for (const auto& thread : text.threads) threads.push_back(ops_json(thread, text.locations));
  const Json json{{"name", text.name},
                  {"locations", locations},
                  {"initial", static_cast<std::int64_t>(text.initial)},
                  {"ops", threads},
                  {"observed", text.observed},
                  {"unset_register", text.unset_register}};
  return json.dump();
}

}  // namespace perfring::model
