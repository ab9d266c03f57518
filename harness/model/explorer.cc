#include "harness/model/explorer.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "harness/model/rc11.h"
#include "harness/model/state_key.h"
#include "harness/model/thread_tree.h"

namespace perfring::model {
namespace {

using Kind = Step::Kind;

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

  void violate(const Execution& x, std::string what) {
    if (x.events.size() > options_.bounds.events) return;
    ++result_.violations;
    if (!result_.violation) result_.violation = Violation{std::move(what), x};
  }

  void stop(std::string bound) {
    result_.bound = std::move(bound);
    stopped_ = true;
  }

  bool within_bounds(const Execution& x) {
    const Bounds& bounds = options_.bounds;
    constexpr std::size_t kBytesForState = 48;  // of the set, bucket and node
    if (x.events.size() > bounds.events) {      // but others may be shorter
      result_.bound = "more than " + std::to_string(bounds.events) + " events";
      return false;
    }
    if (result_.executions >= bounds.executions) {
      stop("more than " + std::to_string(bounds.executions) + " executions");
    } else if (seen_.size() * kBytesForState > bounds.memory_bytes) {
      stop("more than " + std::to_string(bounds.memory_bytes) + " bytes for the states seen");
    } else if (seen_.size() % 1024 == 0 && elapsed() > bounds.seconds) {
      stop("more than " + std::to_string(bounds.seconds) + " seconds");
    }
    return !stopped_;
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
    if (!seen_.insert(options_.merge ? future_key(x) : x.key).second) return;
    ++result_.states;
    if (within_bounds(x)) branch(std::move(x));
  }

  // A step that does not read. False if that was all there is to see of this execution.
  bool do_step(Execution& x, std::size_t thread, const Step& step) {
    switch (step.kind) {
      case Kind::Fence:
        x.fence(thread);
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
        violate(x, step.message);
        return false;
      case Kind::Block:
        ++result_.blocked;
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
    violate(x, "data race");
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
      take(Execution{x}, choice);
      if (over()) return;
    }
    take(std::move(x), last);
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
  Result result_;
};

}  // namespace

Result explore(const Program& program, const ExploreOptions& options) {
  return Explorer{program, options}.run();
}

Result explore_for_shortest(const Program& program, const ExploreOptions& options) {
  Result shortest = explore(program, options);
  ExploreOptions shorter = options;
  while (shortest.violation) {
    shorter.bounds.events = shortest.violation->execution.events.size() - 1;
    Result result = explore(program, shorter);
    if (!result.violation) break;
    shortest = std::move(result);
  }
  return shortest;
}

}  // namespace perfring::model
