#include "harness/model/engine/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "harness/model/engine/rc11.h"
#include "harness/model/engine/state_key.h"
#include "harness/model/engine/thread_tree.h"

namespace perfring::model {
namespace {

using Kind = Step::Kind;

// What sequentially consistent fences order between threads is in the graph, and in no state.
struct CannotMerge {};

class Explorer {
 public:
  Explorer(const Program& program, const ExploreOptions& options)
      : program_{program}, options_{options} {
    if (program.threads.empty() || program.threads.size() > Program::kThreadsMax) {
      throw UsageError{"a program has 1 to " + std::to_string(Program::kThreadsMax) + " threads"};
    }
    for (const auto& code : program.threads) add_thread(code);
    if (program.finally) add_thread(program.finally);
  }

  Result run() {
    Execution x{program_.locations, trees_.size()};
    for (std::size_t i = 0; i < trees_.size(); ++i) x.threads[i].node = &trees_[i]->root();
    if (program_.finally) x.threads.back().is_finally = true;
    settle(std::move(x));
    result_.seconds = elapsed();
    return std::move(result_);
  }

 private:
  void add_thread(const std::function<void()>& code) {
    trees_.push_back(std::make_unique<ThreadTree>(code, options_.merge, options_.bounds.steps));
  }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  bool over() const { return stopped_ || (result_.violation && !options_.all); }

  void advance(Execution& x, std::size_t thread) const {
    Thread& at = x.threads[thread];
    ++at.step;
    jump(at);
  }
  static void jump(Thread& at) {
    while (at.step == at.node->steps.size() && at.node->jump != nullptr) {
      at.node = at.node->jump;
      at.step = 0;
    }
  }

  void violate(const Execution& x, const Cause& cause) {
    if (!sc_consistent(x) || too_long(x)) return;
    ++result_.violations;
    if (result_.violation && !options_.on_violation) return;
    const Trace trace = trace_of(program_, x, cause);
    if (options_.on_violation) options_.on_violation(trace);
    if (!result_.violation) result_.violation = trace;
  }

  void stop(std::string bound) {
    result_.bound = std::move(bound);
    stopped_ = true;
  }

  // Others may be shorter.
  bool too_long(const Execution& x) {
    if (x.events.size() <= options_.bounds.events) return false;
    result_.bound = fmt::format("more than {} events in an execution", options_.bounds.events);
    return true;
  }

  bool within_bounds(const Execution& x) {
    const Bounds& bounds = options_.bounds;
    if (too_long(x)) return false;
    if (result_.executions >= bounds.executions) {
      stop(fmt::format("more than {} executions", bounds.executions));
    } else if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
      stop("interrupted");
    } else if (result_.states % 256 == 0) {
      look_around();
    }
    return !stopped_;
  }

  // Now and then.
  void look_around() {
    std::size_t bytes = seen_.bytes();
    for (const auto& tree : trees_) bytes += tree->bytes();
    const Bounds& bounds = options_.bounds;
    result_.seconds = elapsed();
    if (bytes > bounds.memory_bytes) {
      stop(fmt::format("more than {} MiB for the states seen", bounds.memory_bytes >> 20));
    } else if (result_.seconds > bounds.seconds) {
      stop(fmt::format("more than {} seconds", bounds.seconds));
    } else if (options_.on_progress && result_.seconds >= shown_ + 1) {
      shown_ = result_.seconds;
      options_.on_progress(result_);
    }
  }

  // Does what branches into nothing, until every thread reads next or has ended.
  void settle(Execution x) {
    for (std::size_t thread = 0; thread < program_.threads.size();) {
      jump(x.threads[thread]);
      const Step& step = x.threads[thread].next();
      if (step.kind == Kind::Read && step.order == Order::NonAtomic) {
        // One choice, which nothing that others do can change without a race.
        if (!read(x, thread, readable(x, thread).front())) return;
      } else if (step.kind == Kind::End || step.reads()) {
        ++thread;
      } else if (!do_step(x, thread, step)) {
        return;
      }
      if (over()) return;
    }
    if (!sc_consistent(x)) return;
    if (!seen_.insert(key_of(x))) {
      if (options_.merge) ++result_.merged;
      return;
    }
    ++result_.states;
    if (within_bounds(x)) branch(std::move(x));
  }

  // The beginning is a graph without facts; in the set, zeros are nothing.
  GraphKey key_of(const Execution& x) const {
    GraphKey key = options_.merge ? future_key(x) : x.key;
    if (key == GraphKey{}) key.low = 1;
    return key;
  }

  // A step that does not read. False if that was all there is to see of this execution.
  bool do_step(Execution& x, std::size_t thread, const Step& step) {
    switch (step.kind) {
      case Kind::Fence:
        x.fence(thread);
        if (options_.merge && !x.threads[thread].is_finally && std::popcount(x.sc_threads) > 1) {
          throw CannotMerge{};
        }
        break;
      case Kind::Write: {
        const std::vector<EventId> after = places(x, thread);
        for (std::size_t i = 1; i < after.size(); ++i) {
          Execution other = x;
          other.write(thread, after[i]);
          if (no_race(other)) settle_after(std::move(other), thread);
          if (over()) return false;
        }
        x.write(thread, after[0]);
        if (!no_race(x)) return false;
        break;
      }
      case Kind::Fail:
        violate(x, {step.message, thread, step.where});
        return false;
      case Kind::Block:
        if (sc_consistent(x) && seen_.insert(key_of(x))) ++result_.blocked;
        return false;
      default:
        return false;
    }
    advance(x, thread);
    return true;
  }

  void settle_after(Execution x, std::size_t thread) {
    advance(x, thread);
    settle(std::move(x));
  }

  bool no_race(const Execution& x) {
    if (x.race.first == kNone) return true;
    const Event& second = x.events[x.race.second];
    violate(x, {kDataRace, second.thread, second.step->where});
    return false;
  }

  struct Choice {
    std::size_t thread;
    EventId from;
  };

  void branch(Execution x) {
    std::vector<Choice> choices;
    for (std::size_t thread = 0; thread < program_.threads.size(); ++thread) {
      if (x.threads[thread].ended()) continue;
      for (const EventId from : readable(x, thread)) choices.push_back({thread, from});
    }
    if (choices.empty()) return complete(std::move(x));
    const Choice last = choices.back();
    choices.pop_back();
    for (const Choice& choice : choices) {
      if (!leads_to_seen(x, choice)) take(Execution{x}, choice);
      if (over()) return;
    }
    take(std::move(x), last);
  }

  // Spares most of the copies that would be made for nothing.
  bool leads_to_seen(const Execution& x, const Choice& choice) {
    if (options_.merge) return false;
    const ThreadTree::Node& node =
        trees_[choice.thread]->next(*x.threads[choice.thread].node, x.events[choice.from].written);
    const auto key = x.key_after_read(choice.thread, choice.from, node);
    return key && seen_.contains(*key);
  }

  void take(Execution x, const Choice& choice) {
    if (read(x, choice.thread, choice.from)) settle(std::move(x));
  }

  bool read(Execution& x, std::size_t thread, EventId from) {
    const std::uint64_t value = x.read(thread, from);
    if (!no_race(x)) return false;
    Thread& at = x.threads[thread];
    at.node = &trees_[thread]->next(*at.node, value);
    at.step = 0;
    return true;
  }

  void complete(Execution x) {
    if (program_.finally && !run_finally(x)) return;
    ++result_.executions;
    if (options_.on_execution) options_.on_execution(x);
  }

  // Knows all that has happened, so that every read has one choice.
  bool run_finally(Execution& x) {
    const std::size_t thread = program_.threads.size();
    for (std::size_t i = 0; i < thread; ++i) x.threads[thread].known.join(x.threads[i].known);
    for (;;) {
      jump(x.threads[thread]);
      const Step& step = x.threads[thread].next();
      if (step.kind == Kind::End) return true;
      if (step.reads()) {
        if (!read(x, thread, x.latest[step.location])) return false;
      } else if (!do_step(x, thread, step)) {
        return false;
      }
    }
  }

  const Program& program_;
  const ExploreOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<ThreadTree>> trees_;
  SeenStates seen_;
  bool stopped_ = false;
  double shown_ = 0;  // seconds, when progress last was
  Result result_;
};

}  // namespace

Result explore(const Program& program, const ExploreOptions& options) {
  try {
    return Explorer{program, options}.run();
  } catch (const CannotMerge&) {
    ExploreOptions unmerged = options;
    unmerged.merge = false;
    return Explorer{program, unmerged}.run();
  }
}

Result explore_for_shortest(const Program& program, const ExploreOptions& options) {
  Result result = explore(program, options);
  constexpr double kSecondsToShorten = 10;
  ExploreOptions shorter = options;
  shorter.bounds.seconds = std::min(options.bounds.seconds, kSecondsToShorten);
  std::optional<Trace> shortest = result.violation;
  for (std::optional<Trace> found = shortest; found;) {
    shorter.bounds.events = found->execution_events - 1;
    found = explore(program, shorter).violation;
    if (found && found->events.size() < shortest->events.size()) shortest = found;
  }
  result.violation = std::move(shortest);
  return result;
}

}  // namespace perfring::model
