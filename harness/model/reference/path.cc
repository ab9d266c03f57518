#include "harness/model/reference/axioms.h"

#include <cstddef>
#include <iterator>
#include <string>

#include "harness/model/engine/usage_error.h"

namespace perfring::model::reference {
namespace {

using Order = Op::Order;

// read_order() and write_order() return the orders of an update's read and write.
Order read_order(Order order) {
  if (order == Order::AcquireRelease) return Order::Acquire;
  return order == Order::Release ? Order::Relaxed : order;
}
Order write_order(Order order) {
  if (order == Order::AcquireRelease) return Order::Release;
  return order == Order::Acquire ? Order::Relaxed : order;
}

// Runs a thread once. Its n-th read returns the value with the number choices[n].
class Walk {
 public:
  Walk(const Values& values, std::uint64_t unset, std::vector<std::size_t>& choices)
      : values_{values}, unset_{unset}, choices_{choices} {}

  void run(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      if (path.blocked) return;
      run(op);
    }
  }

  // Advances to the next sequence of choices. Returns false after the last one.
  bool next() {
    choices_.resize(options_.size());
    while (!choices_.empty() && choices_.back() + 1 == options_[choices_.size() - 1]) {
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
    ++choices_.back();
    return true;
  }

  Path path;

 private:
  std::uint64_t value_of(const std::string& reg) const {
    const auto found = path.registers.find(reg);
    return found == path.registers.end() ? unset_ : found->second;
  }

  void run(const Op& op) {
    switch (op.kind) {
      case Op::Kind::Write:
        return write(op, op.value, write_order(op.order), false);
      case Op::Kind::WriteRegister:
        if (const auto read = assigned_.find(op.reg); read != assigned_.end()) {
          path.data.emplace_back(read->second, path.events.size());
        }
        return write(op, value_of(op.reg), op.order, false);
      case Op::Kind::Read:
        return read(op, op.order);
      case Op::Kind::FetchAdd:
        read(op, read_order(op.order));
        return write(op, value_of(op.reg) + op.value, write_order(op.order), true);
      case Op::Kind::Exchange:
        read(op, read_order(op.order));
        return write(op, op.value, write_order(op.order), true);
      case Op::Kind::CompareExchange:
        read(op, op.failure);
        if (value_of(op.reg) != op.expected) return;
        path.events.back().order = read_order(op.order);
        return write(op, op.value, write_order(op.order), true);
      case Op::Kind::Fence:
        path.events.push_back({.kind = PathEvent::Kind::Fence, .order = op.order});
        return;
      case Op::Kind::If:
        if (value_of(op.reg) == op.value) run(op.body);
        return;
      case Op::Kind::Control:
        if (const auto read = assigned_.find(op.reg); read != assigned_.end()) {
          branches_.push_back(read->second);
        }
        return;
      case Op::Kind::Assume:
        path.blocked = value_of(op.reg) != op.value;
        return;
      case Op::Kind::Checkpoint:
        return;
    }
  }

  void write(const Op& op, std::uint64_t value, Order order, bool update) {
    for (const std::size_t read : branches_) path.control.emplace_back(read, path.events.size());
    path.events.push_back({.kind = PathEvent::Kind::Write,
                           .order = order,
                           .location = op.location,
                           .value = value,
                           .update = update});
  }

  void read(const Op& op, Order order) {
    const std::set<std::uint64_t>& values = values_[op.location];
    const std::size_t i = options_.size();
    options_.push_back(values.size());
    if (i == choices_.size()) choices_.push_back(0);
    const std::uint64_t value =
        *std::next(values.begin(), static_cast<std::ptrdiff_t>(choices_[i]));
    path.registers[op.reg] = value;
    assigned_[op.reg] = path.events.size();
    path.events.push_back(
        {.kind = PathEvent::Kind::Read, .order = order, .location = op.location, .value = value});
  }

  const Values& values_;
  const std::uint64_t unset_;
  std::vector<std::size_t>& choices_;
  std::vector<std::size_t> options_;             // the number of values of each read so far
  std::map<std::string, std::size_t> assigned_;  // the read that assigned the register
  std::vector<std::size_t> branches_;            // the reads that a CTRL depends on
};

std::size_t stores_in(const std::vector<Op>& ops) {
  std::size_t stores = 0;
  for (const Op& op : ops) stores += (op.stores() ? 1 : 0) + stores_in(op.body);
  return stores;
}

constexpr std::size_t kPathsMax = 100'000;

}  // namespace

std::vector<Path> paths_of(const std::vector<Op>& thread, std::uint64_t unset,
                           const Values& values) {
  std::vector<Path> paths;
  std::vector<std::size_t> choices;
  for (;;) {
    Walk walk{values, unset, choices};
    walk.run(thread);
    const bool more = walk.next();
    paths.push_back(std::move(walk.path));
    if (!more) return paths;
    if (paths.size() == kPathsMax) {
      throw UsageError{"a thread has more than " + std::to_string(kPathsMax) + " paths"};
    }
  }
}

// Returns a superset of the values after as many rounds as there are stores, plus one: each store
// passes a value on, or depends on it, at most once, because reads-from, data and control have no
// cycle together.
Values values_of(const LitmusText& text) {
  Values values(text.locations.size(), {text.initial});
  std::size_t rounds = 1;
  for (const auto& thread : text.threads) rounds += stores_in(thread);
  for (; rounds != 0; --rounds) {
    Values more = values;
    for (const auto& thread : text.threads) {
      const auto unset = static_cast<std::uint64_t>(text.unset_register);
      for (const Path& path : paths_of(thread, unset, values)) {
        for (const PathEvent& event : path.events) {
          if (event.kind == PathEvent::Kind::Write) more[event.location].insert(event.value);
        }
      }
    }
    if (more == values) break;
    values = std::move(more);
  }
  return values;
}

}  // namespace perfring::model::reference
