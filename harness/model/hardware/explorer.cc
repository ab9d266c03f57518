#include "harness/model/hardware/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/engine/limits.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/thread_tree.h"
#include "harness/model/engine/trace.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/hardware/graph.h"
#include "harness/model/hardware/order.h"
#include "harness/program/numbers.h"

namespace perfring::model {
namespace {

using Kind = Step::Kind;

// A graph, and the progress of its threads. The threads before `thread` have ended.
struct State {
  Graph graph;
  std::size_t thread = 0;
  const ThreadTree::Node* node = nullptr;
  std::size_t step = 0;
  bool blocked = false;
  std::optional<FailedCheck> failed = {};  // the first one

  const Step& next() const { return node->steps[step]; }
};

class MachineExplorer {
 public:
  MachineExplorer(const Program& program, MemoryModel machine, const MachineOptions& options)
      : program_{program},
        machine_{machine},
        options_{options},
        trees_{trees_of(program, {.steps_max = options.bounds.steps, .of_machine = true})} {
    stored_.assign(program.threads.size(),
                   std::vector<std::set<std::uint64_t>>(program.locations.size()));
  }

  Result run() {
    do {
      found_more_ = false;
      result_.executions = result_.blocked = result_.violations = 0;
      State state{Graph{machine_, program_.locations.size(), program_.threads.size()}};
      state.node = &trees_[0]->root();
      explore(std::move(state));
    } while (found_more_ && !stopped());
    result_.seconds = limits_.elapsed();
    if (result_.bound.empty()) result_.bound = too_long_;
    return std::move(result_);
  }

 private:
  bool stopped() const { return !result_.bound.empty() || (result_.violation && !options_.all); }

  // Whether the execution has reached the bound on events. Only this execution is dropped: others
  // may be shorter.
  bool too_long(const Graph& graph) {
    const std::size_t most = std::min(options_.bounds.events, kMachineEventsMax);
    if (graph.accesses().size() < most) return false;
    too_long_ = fmt::format("more than {} in an execution", counted(most, "event"));
    return true;
  }

  void enforce_bounds() {
    ++result_.states;
    if (result_.executions > options_.bounds.executions) {
      result_.bound = fmt::format("more than {}", counted(options_.bounds.executions, "execution"));
    } else {
      std::string bound = limits_.reached(result_, [&] {
        std::size_t bytes = 0;
        for (const auto& tree : trees_) bytes += tree->bytes();
        return bytes;
      });
      if (!bound.empty()) result_.bound = std::move(bound);
    }
  }

  // Under AArch64 and RISC-V a graph stays consistent as it grows; LKMM has further axioms.
  bool allowed(const Graph& graph) const {
    return machine_ != MemoryModel::Lkmm || lkmm_allows(graph);
  }

  // Explores every continuation of `state`.
  void explore(State state) {
    for (;;) {
      const bool last = state.thread + 1 == program_.threads.size();
      if (stopped() || (last && state.graph.awaits_in_vain(state.thread))) return;
      // Later steps cannot undo the failed check.
      if (state.failed && state.graph.awaiting().empty()) return complete(std::move(state));
      const Step& next = state.next();
      switch (next.kind) {
        case Kind::Read:
          if (!read(state, next)) return;
          continue;
        case Kind::Write:
          return write(std::move(state), next);
        case Kind::Fence:
          refuse_unknown(next.order);
          state.graph.add_fence(state.thread, next);
          break;
        case Kind::Control:
          state.graph.add_control(state.thread, next.depends_on);
          break;
        case Kind::Fail:
          if (!state.failed) state.failed = failed_check(state, next);
          break;
        case Kind::Block:
        case Kind::End:
          state.blocked = state.blocked || next.kind == Kind::Block;
          if (last) return complete(std::move(state));
          state.node = &trees_[++state.thread]->root();
          state.step = 0;
          continue;
        default:
          throw UsageError{"only RC11 has updates"};
      }
      ++state.step;
    }
  }

  void refuse_unknown(Order fence) const {
    if (machine_ != MemoryModel::Lkmm) return;
    if (fence != Order::Release && fence != Order::AcquireRelease) return;
    throw UsageError{"the kernel has no release fence"};
  }

  static FailedCheck failed_check(const State& state, const Step& fail) {
    return {{fail.message, state.thread, fail.where}, state.graph.accesses().size(), false};
  }

  struct Choice {
    std::size_t source;
    std::uint64_t value;
  };

  std::vector<Choice> choices(const State& state, const Step& read) const {
    const std::size_t location = read.location;
    std::vector<Choice> all;
    const auto consider = [&](std::size_t source, std::uint64_t value) {
      if (state.graph.allows_read(state.thread, read, source)) all.push_back({source, value});
    };
    consider(kInitial, program_.locations[location].initial);
    for (const std::size_t store : state.graph.stores(location)) {
      consider(store, state.graph.accesses()[store].value);
    }
    std::set<std::uint64_t> awaited;
    for (std::size_t later = state.thread + 1; later < program_.threads.size(); ++later) {
      awaited.insert(stored_[later][location].begin(), stored_[later][location].end());
    }
    for (const std::uint64_t value : awaited) all.push_back({kAwaited, value});
    return all;
  }

  // Explores all choices except the last, with which `state` continues. Returns false if the read
  // has no choice.
  bool read(State& state, const Step& read) {
    enforce_bounds();
    if (too_long(state.graph)) return false;
    const std::vector<Choice> all = choices(state, read);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      State other = state;
      follow_read(other, read, all[i]);
      explore(std::move(other));
      if (stopped()) return false;
    }
    if (!all.empty()) follow_read(state, read, all.back());
    return !all.empty();
  }

  void follow_read(State& state, const Step& read, const Choice& choice) {
    state.graph.add_read(state.thread, read, choice.source, choice.value);
    state.node = &trees_[state.thread]->next(*state.node, choice.value);
    state.step = 0;
  }

  void write(State state, const Step& write) {
    enforce_bounds();
    if (too_long(state.graph)) return;
    const std::size_t location = write.location;
    const std::size_t last = state.graph.stores(location).size();
    for (std::size_t place = state.graph.first_place(state.thread, location); place < last;
         ++place) {
      write_at(state, write, place);
      if (stopped()) return;
    }
    write_at(std::move(state), write, last);
  }

  void write_at(State state, const Step& write, std::size_t place) {
    if (!state.graph.add_write(state.thread, write, place) || !allowed(state.graph)) return;
    // A value counts as soon as an execution is consistent up to the value's store.
    if (stored_[state.thread][write.location].insert(write.value).second) found_more_ = true;
    ++state.step;
    const std::size_t store = state.graph.accesses().size() - 1;
    give(std::move(state), store, 0);
  }

  // Gives the store to reads that await its value: explores every subset of these reads.
  void give(State state, std::size_t store, std::size_t from) {
    const Access& access = state.graph.accesses()[store];
    const std::vector<std::size_t> awaiting = state.graph.awaiting();
    for (std::size_t i = from; i < awaiting.size(); ++i) {
      const Access& read = state.graph.accesses()[awaiting[i]];
      if (read.location != access.location || read.value != access.value) continue;
      State given = state;
      // give() has removed this read from awaiting(), so the next read is at the same index.
      if (given.graph.give(awaiting[i], store) && allowed(given.graph)) {
        give(std::move(given), store, i);
      }
      if (stopped()) return;
    }
    explore(std::move(state));
  }

  void complete(State state) {
    if (!state.graph.awaiting().empty() || !allowed(state.graph)) return;
    if (!state.blocked && program_.finally && !state.failed) run_finally(state);
    if (state.failed) {
      ++result_.violations;
      Trace trace = graph_trace(program_, state.graph, *state.failed);
      if (!result_.violation || trace.events.size() < result_.violation->events.size()) {
        result_.violation = std::move(trace);
      }
      return;
    }
    if (state.blocked) {
      ++result_.blocked;
      return;
    }
    ++result_.executions;
    if (options_.on_execution) options_.on_execution(state.graph);
  }

  // `finally` sees the stores of all threads.
  void run_finally(State& state) {
    std::map<std::size_t, std::uint64_t> memory;
    for (std::size_t i = 0; i < program_.locations.size(); ++i) {
      const auto& stores = state.graph.stores(i);
      memory[i] = stores.empty() ? program_.locations[i].initial
                                 : state.graph.accesses()[stores.back()].value;
    }
    ThreadTree& tree = *trees_.back();
    const ThreadTree::Node* node = &tree.root();
    for (std::size_t step = 0;; ++step) {
      const Step& next = node->steps[step];
      if (next.kind == Kind::End) return;
      if (next.kind == Kind::Block) {
        state.blocked = true;
        return;
      }
      if (next.kind == Kind::Fail) {
        state.failed = FailedCheck{{next.message, program_.threads.size(), next.where},
                                   state.graph.accesses().size(),
                                   true};
        return;
      }
      if (next.kind == Kind::Write) memory[next.location] = next.value;
      if (next.kind == Kind::Update) throw UsageError{"only RC11 has updates"};
      if (next.kind != Kind::Read) continue;
      node = &tree.next(*node, memory[next.location]);
      step = ~std::size_t{0};
    }
  }

  const Program& program_;
  const MemoryModel machine_;
  const MachineOptions& options_;
  std::vector<std::unique_ptr<ThreadTree>> trees_;
  // The values that each thread is known to store to each location.
  std::vector<std::vector<std::set<std::uint64_t>>> stored_;
  bool found_more_ = false;
  std::string too_long_;  // the bound that dropped executions have reached
  Limits limits_{options_.bounds, options_.stop, options_.on_progress, "the threads' steps"};
  Result result_;
};

}  // namespace

Result explore_machine(const Program& program, MemoryModel machine, const MachineOptions& options) {
  return MachineExplorer{program, machine, options}.run();
}

}  // namespace perfring::model
