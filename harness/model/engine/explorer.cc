#include "harness/model/engine/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "harness/model/engine/limits.h"
#include "harness/model/engine/rc11.h"
#include "harness/model/engine/state_key.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/thread_tree.h"
#include "harness/program/numbers.h"

namespace perfring::model {
namespace {

using Kind = Step::Kind;

// Thrown if two threads have sequentially consistent fences: the graph has the order of these
// fences, but a state's key does not.
struct CannotMerge {};

// Thrown if a location turns out to have both atomic and plain accesses: the keys of the states
// merged so far do not include which thread knows of the atomic ones.
struct FoundMixed {
  std::size_t location;
};

// Whether an execution continues; if not, why it ends here.
enum class Fate {
  GoesOn,
  Raced,
  Violated,
  Blocked,  // an assumption of `finally` does not hold
  TooLong,  // more events than the bound
  Stopped,  // the whole exploration ends: another bound, a signal, or the only violation wanted
};

// The search is one recursion over graphs that grow:
//
//   explore(x)
//     run_to_reads(x)          runs each thread until its next step is a read, or it has ended
//       step(x, thread)
//         write(x, thread) ... modification order has several places: explore(a copy with each)
//     ends here if a graph with x's key was seen before, or a bound is reached
//     branch(x)                a choice is a thread and a write for it to read from
//       follow(x, choice) .... each choice: explore(a copy with it)
//       complete(x)            no thread is left to choose: runs `finally`, counts the execution
//
// A thread stops at an assumption that does not hold. The other threads continue: they may still
// race with an access before the assumption, or violate a check.
//
// A function that returns Fate::GoesOn has grown `x`. With any other Fate, it has recorded the
// reason. An execution that SC forbids is dropped without a record.
class Explorer {
 public:
  Explorer(const Program& program, const ExploreOptions& options, std::vector<bool> mixed)
      : program_{program},
        options_{options},
        mixed_{std::move(mixed)},
        atomic_(program.locations.size(), false),
        plain_(program.locations.size(), false),
        trees_{trees_of(program, {.merge = options.merge, .steps_max = options.bounds.steps})} {}

  Result run() {
    Execution x{program_.locations, trees_.size()};
    for (std::size_t i = 0; i < trees_.size(); ++i) x.threads[i].node = &trees_[i]->root();
    if (program_.finally) x.threads.back().is_finally = true;
    explore(std::move(x));
    result_.seconds = limits_.elapsed();
    return std::move(result_);
  }

 private:
  bool stopped() const { return stopped_ || (result_.violation && !options_.all); }

  void violate(const Execution& x, const Cause& cause) {
    if (!sc_consistent(x)) return;
    if (too_long(x)) return;
    ++result_.violations;
    if (result_.violation && !options_.on_violation) return;
    const Trace trace = trace_of(program_, x, cause);
    if (options_.on_violation) options_.on_violation(trace);
    if (!result_.violation) result_.violation = trace;
  }

  // Whether the execution exceeds the bound on events. Only this execution is dropped: others may
  // be shorter.
  bool too_long(const Execution& x) {
    if (x.events.size() <= options_.bounds.events) return false;
    result_.bound =
        fmt::format("more than {} in an execution", counted(options_.bounds.events, "event"));
    return true;
  }

  Fate enforce_bounds(const Execution& x) {
    if (too_long(x)) return Fate::TooLong;
    const auto bytes = [this] {
      std::size_t sum = visited_.bytes();
      for (const auto& tree : trees_) sum += tree->bytes();
      return sum;
    };
    std::string bound =
        result_.executions < options_.bounds.executions
            ? limits_.reached(result_, bytes)
            : fmt::format("more than {}", counted(options_.bounds.executions, "execution"));
    if (bound.empty()) return Fate::GoesOn;
    result_.bound = std::move(bound);
    stopped_ = true;
    return Fate::Stopped;
  }

  // Explores every continuation of `x`.
  void explore(Execution x) {
    if (run_to_reads(x) != Fate::GoesOn || !sc_consistent(x)) return;
    if (!visited_.insert(key_of(x))) {
      if (options_.merge) ++result_.merged;
      return;
    }
    ++result_.states;
    if (enforce_bounds(x) == Fate::GoesOn) branch(std::move(x));
  }

  Fate run_to_reads(Execution& x) {
    for (std::size_t thread = 0; thread < program_.threads.size();) {
      x.threads[thread].jump();
      const Step& next = x.threads[thread].next();
      const bool plain_read = next.kind == Kind::Read && next.order == Order::NonAtomic;
      if (x.threads[thread].ended() || (next.reads() && !plain_read)) {
        ++thread;
        continue;
      }
      // A non-atomic read has one choice: it could read from another write only in a race.
      const Fate fate =
          plain_read ? read(x, thread, readable(x, thread).front()) : step(x, thread, next);
      if (fate != Fate::GoesOn) return fate;
      if (stopped()) return Fate::Stopped;
    }
    return Fate::GoesOn;
  }

  // A graph without facts has the key 0, which VisitedStates uses for empty slots, so it gets
  // another one.
  GraphKey key_of(const Execution& x) const {
    GraphKey key = options_.merge ? future_key(x, mixed_) : x.key;
    if (key == GraphKey{}) key.low = 1;
    return key;
  }

  void note_access(const Step& step) {
    (step.order == Order::NonAtomic ? plain_ : atomic_)[step.location] = true;
    const bool both = plain_[step.location] && atomic_[step.location];
    if (options_.merge && both && !mixed_[step.location]) throw FoundMixed{step.location};
  }

  // Takes the thread's next step, which is not a read.
  Fate step(Execution& x, std::size_t thread, const Step& next) {
    switch (next.kind) {
      case Kind::Fence:
        x.fence(thread);
        if (options_.merge && !x.threads[thread].is_finally && std::popcount(x.sc_threads) > 1) {
          throw CannotMerge{};
        }
        break;
      case Kind::Write:
        if (const Fate fate = write(x, thread); fate != Fate::GoesOn) return fate;
        break;
      default:  // Fail
        violate(x, {next.message, thread, next.where});
        return Fate::Violated;
    }
    x.threads[thread].advance();
    return Fate::GoesOn;
  }

  // Adds the write to `x` at the first place in modification order, after exploring a copy of `x`
  // for each other place.
  Fate write(Execution& x, std::size_t thread) {
    note_access(x.threads[thread].next());
    const std::vector<EventId> after = places(x, thread);
    for (std::size_t i = 1; i < after.size(); ++i) {
      Execution other = x;
      other.write(thread, after[i]);
      if (report_race(other) == Fate::GoesOn) {
        other.threads[thread].advance();
        explore(std::move(other));
      }
      if (stopped()) return Fate::Stopped;
    }
    x.write(thread, after[0]);
    return report_race(x);
  }

  Fate report_race(const Execution& x) {
    if (x.race.first == kNone) return Fate::GoesOn;
    const Event& second = x.events[x.race.second];
    violate(x, {kDataRace, second.thread, second.step->where});
    return Fate::Raced;
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
      if (!leads_to_visited(x, choice)) follow(Execution{x}, choice);
      if (stopped()) return;
    }
    follow(std::move(x), last);
  }

  // Whether the choice leads to a graph that was visited before. Saves most of the copies that
  // follow() would make for nothing.
  bool leads_to_visited(const Execution& x, const Choice& choice) {
    if (options_.merge) return false;
    const ThreadTree::Node& node =
        trees_[choice.thread]->next(*x.threads[choice.thread].node, x.events[choice.from].written);
    const auto key = x.key_after_read(choice.thread, choice.from, node);
    return key && visited_.contains(*key);
  }

  void follow(Execution x, const Choice& choice) {
    if (read(x, choice.thread, choice.from) == Fate::GoesOn) explore(std::move(x));
  }

  Fate read(Execution& x, std::size_t thread, EventId from) {
    note_access(x.threads[thread].next());
    const std::uint64_t value = x.read(thread, from);
    if (const Fate fate = report_race(x); fate != Fate::GoesOn) return fate;
    Thread& at = x.threads[thread];
    at.node = &trees_[thread]->next(*at.node, value);
    at.step = 0;
    return Fate::GoesOn;
  }

  void complete(Execution x) {
    const bool blocked = std::ranges::any_of(
        x.threads, [](const Thread& thread) { return !thread.is_finally && thread.blocked(); });
    const Fate fate = !blocked && program_.finally ? run_finally(x) : Fate::GoesOn;
    if (blocked || fate == Fate::Blocked) {
      ++result_.blocked;
      return;
    }
    if (fate != Fate::GoesOn) return;
    ++result_.executions;
    if (options_.on_execution) options_.on_execution(x);
  }

  // `finally` knows of every event, so that each of its reads has one choice.
  Fate run_finally(Execution& x) {
    const std::size_t thread = program_.threads.size();
    for (std::size_t i = 0; i < thread; ++i) x.threads[thread].known.join(x.threads[i].known);
    for (;;) {
      x.threads[thread].jump();
      const Step& next = x.threads[thread].next();
      if (x.threads[thread].blocked()) return Fate::Blocked;
      if (next.kind == Kind::End) return Fate::GoesOn;
      const Fate fate =
          next.reads() ? read(x, thread, x.latest[next.location]) : step(x, thread, next);
      if (fate != Fate::GoesOn) return fate;
    }
  }

  const Program& program_;
  const ExploreOptions& options_;
  const std::vector<bool> mixed_;     // locations with both kinds of accesses
  std::vector<bool> atomic_, plain_;  // locations with such an access
  std::vector<std::unique_ptr<ThreadTree>> trees_;
  VisitedStates visited_;
  Limits limits_{options_.bounds, options_.stop, options_.on_progress, "the visited states"};
  bool stopped_ = false;
  Result result_;
};

}  // namespace

Result explore(const Program& program, const ExploreOptions& options) {
  std::vector<bool> mixed(program.locations.size(), false);
  ExploreOptions how = options;
  for (;;) {
    try {
      return Explorer{program, how, mixed}.run();
    } catch (const CannotMerge&) {
      how.merge = false;
    } catch (const FoundMixed& found) {
      mixed[found.location] = true;
    }
  }
}

}  // namespace perfring::model
