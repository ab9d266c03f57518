#include "harness/model/litmus/litmus.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "harness/model/engine/step.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/reference/enumerate.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"

namespace perfring::model {

Json json_of(const LitmusOutcome& outcome) {
  Json json = Json::object();
  for (const auto& [name, value] : outcome) json[name] = value;
  return json;
}

void compare(const Litmus& litmus, MemoryModel memory_model, LitmusVerdict& verdict) {
  const auto differ = [&](std::string what) { verdict.differences.push_back(std::move(what)); };
  const bool race = verdict.result.violation.has_value();
  const auto found = litmus.expected.find(memory_model);
  const bool of_rc11 = memory_model == MemoryModel::Rc11;  // the other models have no races
  verdict.compared = found != litmus.expected.end() || (of_rc11 && litmus.race_given);
  if (!verdict.compared) return;
  if (of_rc11 && race != litmus.race) {
    differ(race ? "an unexpected race" : "the expected race was not found");
  }
  if ((of_rc11 && (race || litmus.race)) || found == litmus.expected.end()) return;
  const Expectation& expected = found->second;
  if (expected.allowed) {
    for (const LitmusOutcome& outcome : *expected.allowed) {
      if (verdict.outcomes.contains(outcome)) continue;
      differ("not found: " + json_of(outcome).dump());
    }
    for (const LitmusOutcome& outcome : verdict.outcomes) {
      if (expected.allowed->contains(outcome)) continue;
      differ("not allowed: " + json_of(outcome).dump());
    }
  }
  verdict.counted = expected.executions.has_value();
  if (verdict.counted && *expected.executions != verdict.result.executions) {
    differ(fmt::format("{}, not {}", counted(verdict.result.executions, "execution"),
                       *expected.executions));
  }
}

LitmusVerdict run_litmus(const Litmus& litmus, ExploreOptions options) {
  LitmusVerdict verdict;
  options.on_execution = [&](const Execution& x) {
    verdict.outcomes.insert(outcome_of(litmus.text, x));
  };
  verdict.result = explore(litmus.program, options);
  // If a bound is reached, the rest is unknown.
  if (verdict.result.bound.empty()) compare(litmus, MemoryModel::Rc11, verdict);
  return verdict;
}

// program_of() and outcome_of() of litmus.h.

namespace {

using Kind = Op::Kind;

std::memory_order order_of(Op::Order order) {
  switch (order) {
    case Op::Order::Acquire:
      return std::memory_order_acquire;
    case Op::Order::Release:
      return std::memory_order_release;
    case Op::Order::AcquireRelease:
      return std::memory_order_acq_rel;
    case Op::Order::SequentiallyConsistent:
      return std::memory_order_seq_cst;
    default:
      return std::memory_order_relaxed;
  }
}

// Runs a thread's operations on the engine's memory.
class ThreadRun {
 public:
  explicit ThreadRun(std::uint64_t unset) : unset_{unset} {}

  void run(const std::vector<Op>& ops) {
    for (const Op& op : ops) run(op);
  }

 private:
  std::uint64_t value_of(const std::string& reg) const {
    const auto found = registers_.find(reg);
    return found == registers_.end() ? unset_ : found->second;
  }

  void write(const Op& op, std::uint64_t value) const {
    const Var var{op.location};
    const Where where{op.line, "litmus"};
    if (op.order == Op::Order::NonAtomic) return var.write(value, where);
    var.store(value, order_of(op.order), where);
  }

  std::uint64_t read(const Op& op) const {
    const Var var{op.location};
    const Where where{op.line, "litmus"};
    const std::memory_order order = order_of(op.order);
    switch (op.kind) {
      case Kind::FetchAdd:
        return var.fetch_add(op.value, order, where);
      case Kind::Exchange:
        return var.exchange(op.value, order, where);
      case Kind::CompareExchange:
        return var.compare_exchange(op.expected, op.value, order, order_of(op.failure), where);
      default:
        return op.order == Op::Order::NonAtomic ? var.read(where) : var.load(order, where);
    }
  }

  void run(const Op& op) {
    const Where where{op.line, "litmus"};
    switch (op.kind) {
      case Kind::Write:
        return write(op, op.value);
      case Kind::WriteRegister:
        if (const auto read = read_by_.find(op.reg); read != read_by_.end()) {
          data_dependency(read->second);
        }
        return write(op, value_of(op.reg));
      case Kind::Read:
      case Kind::FetchAdd:
      case Kind::Exchange:
      case Kind::CompareExchange:
        registers_[op.reg] = read(op);
        read_by_[op.reg] = last_read();
        return;
      case Kind::Fence:
        return op.order == Op::Order::StoreStore ? fence_store_store(where)
                                                 : fence(order_of(op.order), where);
      case Kind::If:
        if (value_of(op.reg) == op.value) run(op.body);
        return;
      case Kind::Control:
        if (const auto read = read_by_.find(op.reg); read != read_by_.end()) {
          control_dependency(read->second, where);
        }
        return;
      case Kind::Assume:
        return assume(value_of(op.reg) == op.value, where);
      case Kind::Checkpoint: {
        std::vector<std::uint64_t> values;
        for (const std::string& reg : op.registers) values.push_back(value_of(reg));
        return checkpoint(std::span<const std::uint64_t>{values}, where);
      }
    }
  }

  const std::uint64_t unset_;
  std::map<std::string, std::uint64_t> registers_;
  std::map<std::string, std::uint32_t> read_by_;  // the number of the read that set it
};

}  // namespace

Program program_of(const LitmusText& text) {
  Program program;
  program.name = text.name;
  for (const std::string& name : text.locations) program.var(name, text.initial);
  for (const auto& thread : text.threads) {
    const auto ops = std::make_shared<const std::vector<Op>>(thread);
    const auto unset = static_cast<std::uint64_t>(text.unset_register);
    program.threads.emplace_back([ops, unset] { ThreadRun{unset}.run(*ops); });
  }
  return program;
}

std::map<std::uint32_t, std::string> register_names(const std::vector<Op>& ops) {
  std::map<std::uint32_t, std::string> names;
  for (const Op& op : ops) {
    if (op.reads()) names[op.line] = op.reg;
    names.merge(register_names(op.body));
  }
  return names;
}

LitmusOutcome observed_of(const LitmusText& text, const LitmusOutcome& all) {
  LitmusOutcome observed;
  for (const std::string& name : text.observed) {
    const auto found = all.find(name);
    observed[name] = found == all.end() ? text.unset_register : found->second;
  }
  return observed;
}

LitmusOutcome outcome_of(const LitmusText& text, const Execution& x) {
  std::vector<std::map<std::uint32_t, std::string>> names;
  for (const auto& thread : text.threads) names.push_back(register_names(thread));
  LitmusOutcome all;
  for (std::size_t i = 0; i < text.locations.size(); ++i) {
    all[text.locations[i]] = static_cast<std::int64_t>(x.events[x.latest[i]].written);
  }
  for (const Event& event : x.events) {
    if (event.reads_from == kNone) continue;
    const std::string& name = names[event.thread].at(event.step->where.line);
    all[fmt::format("{}:{}", event.thread, name)] = static_cast<std::int64_t>(event.read);
  }
  return observed_of(text, all);
}

namespace {

// Keeps the enumeration within its bounds. There is no memory bound, because it keeps no states.
class Watch {
 public:
  Watch(const ExploreOptions& options, Result& result) : options_{options}, result_{result} {}

  bool may_continue(const reference::Enumeration& so_far) {
    result_.executions = so_far.executions;
    result_.blocked = so_far.blocked;
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const Bounds& bounds = options_.bounds;
    if (so_far.executions > bounds.executions) {
      result_.bound = fmt::format("more than {}", counted(bounds.executions, "execution"));
    } else if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
      result_.bound = "interrupted";
    } else if (result_.seconds > bounds.seconds) {
      result_.bound = fmt::format("more than {} s", bounds.seconds);
    } else if (options_.on_progress && result_.seconds >= shown_ + 1) {
      shown_ = result_.seconds;
      options_.on_progress(result_);
    }
    return result_.bound.empty();
  }

 private:
  const ExploreOptions& options_;
  Result& result_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_ = 0;
};

LitmusVerdict enumerate(const Litmus& litmus, MemoryModel memory_model,
                        const ExploreOptions& options) {
  LitmusVerdict verdict;
  Watch watch{options, verdict.result};
  constexpr std::uint64_t kCombinationsMax = std::uint64_t{1} << 40;  // the time is the bound
  reference::Enumeration answer = reference::enumerate(
      litmus.text, memory_model,
      {.combinations = kCombinationsMax, .keep_going = [&](const reference::Enumeration& so_far) {
         return watch.may_continue(so_far);
       }});
  if (answer.complete) watch.may_continue(answer);
  verdict.outcomes = std::move(answer.outcomes);
  if (verdict.result.bound.empty()) compare(litmus, memory_model, verdict);
  return verdict;
}

}  // namespace

LitmusVerdict run_litmus(const Litmus& litmus, MemoryModel memory_model,
                         const ExploreOptions& options) {
  try {
    return memory_model == MemoryModel::Rc11 ? run_litmus(litmus, options)
                                             : enumerate(litmus, memory_model, options);
  } catch (const UsageError& error) {
    LitmusVerdict verdict;
    verdict.refused = error.what();
    return verdict;
  }
}

}  // namespace perfring::model
