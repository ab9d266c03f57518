#include "harness/model/reference/enumerate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "harness/model/engine/usage_error.h"
#include "harness/model/reference/axioms.h"
#include "harness/model/reference/relation.h"

namespace perfring::model::reference {
namespace {

template <class F>
void for_each_op(const std::vector<Op>& ops, F f) {
  for (const Op& op : ops) {
    f(op);
    for_each_op(op.body, f);
  }
}

using Kind = PathEvent::Kind;
using Order = Op::Order;

constexpr std::size_t kNoThread = 0xff;

// Reads-from and modification order of one location.
struct Arrangement {
  std::vector<std::pair<std::size_t, std::size_t>> rf;  // write, read
  std::vector<std::size_t> mo;
};

void apply(Candidate& x, const Arrangement& arrangement) {
  for (const auto& [write, read] : arrangement.rf) x.rf.add(write, read);
  Events later = 0;
  for (auto write = arrangement.mo.rbegin(); write != arrangement.mo.rend(); ++write) {
    x.mo.add_all(*write, later);
    later |= event(*write);
  }
}

class Enumerator {
 public:
  Enumerator(const LitmusText& text, MemoryModel model, const Limits& limits)
      : text_{text}, model_{model}, limits_{limits} {
    const Values values = values_of(text);
    const auto unset = static_cast<std::uint64_t>(text.unset_register);
    std::uint64_t combinations = 1;
    for (const auto& thread : text.threads) {
      paths_.push_back(paths_of(thread, unset, values));
      combinations *= paths_.back().size();
      if (combinations > limits.combinations) {
        throw UsageError{
            fmt::format("the threads' paths have more than {} combinations", limits.combinations)};
      }
    }
  }

  Enumeration run() {
    choose_paths();
    return std::move(answer_);
  }

 private:
  // Chooses a path for each thread that has none yet.
  void choose_paths() {
    if (chosen_.size() == paths_.size()) {
      if (may_continue() && justified()) with_paths();
      return;
    }
    for (const Path& path : paths_[chosen_.size()]) {
      if (!answer_.complete) return;
      chosen_.push_back(&path);
      choose_paths();
      chosen_.pop_back();
    }
  }

  bool may_continue() {
    answer_.complete = answer_.complete && (!limits_.keep_going || limits_.keep_going(answer_));
    return answer_.complete;
  }

  // Whether each value that is read is the initial value or is also stored.
  bool justified() const {
    std::vector<std::vector<std::uint64_t>> stored(text_.locations.size(), {text_.initial});
    const auto for_each_event = [&](auto f) {
      for (const Path* path : chosen_) std::ranges::for_each(path->events, f);
    };
    for_each_event([&](const PathEvent& e) {
      if (e.kind == Kind::Write) stored[e.location].push_back(e.value);
    });
    bool all = true;
    for_each_event([&](const PathEvent& e) {
      const auto& values = stored[e.location];
      if (e.kind == Kind::Read && std::ranges::find(values, e.value) == values.end()) all = false;
    });
    return all;
  }

  Candidate candidate() const {
    std::size_t size = text_.locations.size();
    for (const Path* path : chosen_) size += path->events.size();
    if (size > kEventsMax) {
      throw UsageError{fmt::format("{} events in an execution: at most {}", size, kEventsMax)};
    }
    Candidate x{size};
    for (std::size_t i = 0; i < text_.locations.size(); ++i) {
      x.events.push_back(
          {.kind = Kind::Write, .location = static_cast<std::uint16_t>(i), .value = text_.initial});
      x.thread.push_back(kNoThread);
    }
    for (std::size_t thread = 0; thread < chosen_.size(); ++thread) add_path(x, thread);
    add_sets(x);
    return x;
  }

  void add_path(Candidate& x, std::size_t thread) const {
    const Path& path = *chosen_[thread];
    const std::size_t first = x.events.size();
    for (const PathEvent& event : path.events) {
      refuse_unknown(event);
      const std::size_t i = x.events.size();
      for (std::size_t before = 0; before < i; ++before) {
        if (before >= first || x.thread[before] == kNoThread) x.sb.add(before, i);
      }
      if (event.update) x.rmw.add(i - 1, i);
      x.events.push_back(event);
      x.thread.push_back(thread);
    }
    for (const auto& [from, to] : path.data) x.data.add(first + from, first + to);
    for (const auto& [from, to] : path.control) x.control.add(first + from, first + to);
  }

  void refuse_unknown(const PathEvent& event) const {
    if (model_ == MemoryModel::Rc11) return;
    if (event.order == Order::NonAtomic || event.update) {
      throw UsageError{"only RC11 has plain accesses and updates"};
    }
  }

  static void add_sets(Candidate& x) {
    const std::size_t size = x.events.size();
    x.same_location = Relation{size};
    x.internal = Relation{size};
    for (std::size_t i = 0; i < size; ++i) {
      const PathEvent& e = x.events[i];
      if (e.kind == Kind::Read) x.reads |= event(i);
      if (e.kind == Kind::Write) x.writes |= event(i);
      if (x.thread[i] == kNoThread) x.initial |= event(i);
      for (std::size_t j = 0; j < size; ++j) {
        const bool accesses = e.kind != Kind::Fence && x.events[j].kind != Kind::Fence;
        if (accesses && e.location == x.events[j].location) x.same_location.add(i, j);
        if (x.thread[i] == x.thread[j] && x.thread[i] != kNoThread) x.internal.add(i, j);
      }
    }
  }

  void with_paths() {
    const Candidate x = candidate();
    std::vector<std::vector<Arrangement>> of_location(text_.locations.size());
    for (std::size_t location = 0; location < of_location.size(); ++location) {
      of_location[location] = arrangements(x, location);
      if (of_location[location].empty()) return;
    }
    choose_arrangements(x, of_location, 0);
  }

  std::vector<Arrangement> arrangements(const Candidate& x, std::size_t location) {
    std::vector<std::size_t> reads;
    Arrangement arrangement{{}, {location}};  // the initial value is first
    for (std::size_t i = 0; i < x.events.size(); ++i) {
      if (x.events[i].kind == Kind::Fence || x.events[i].location != location || i == location) {
        continue;
      }
      (x.events[i].kind == Kind::Read ? reads : arrangement.mo).push_back(i);
    }
    std::vector<Arrangement> all;
    do {
      Candidate ordered = x;
      apply(ordered, arrangement);
      if (coherent(ordered)) choose_sources(ordered, reads, arrangement, all);
    } while (may_continue() &&
             std::next_permutation(arrangement.mo.begin() + 1, arrangement.mo.end()));
    return all;
  }

  // `x` has the arrangement so far, and is coherent. An incoherent candidate stays incoherent with
  // more edges, so it is dropped at once.
  static void choose_sources(Candidate& x, const std::vector<std::size_t>& reads,
                             Arrangement& arrangement, std::vector<Arrangement>& all) {
    if (arrangement.rf.size() == reads.size()) {
      all.push_back(arrangement);
      return;
    }
    const std::size_t read = reads[arrangement.rf.size()];
    for (const std::size_t write : arrangement.mo) {
      if (x.events[write].value != x.events[read].value) continue;
      x.rf.add(write, read);
      arrangement.rf.emplace_back(write, read);
      if (coherent(x)) choose_sources(x, reads, arrangement, all);
      arrangement.rf.pop_back();
      x.rf.remove(write, read);
    }
  }

  void choose_arrangements(const Candidate& x,
                           const std::vector<std::vector<Arrangement>>& of_location,
                           std::size_t location) {
    if (location == of_location.size()) return judge(x);
    for (const Arrangement& arrangement : of_location[location]) {
      if (!answer_.complete) return;
      Candidate arranged = x;
      apply(arranged, arrangement);
      choose_arrangements(arranged, of_location, location + 1);
    }
  }

  void judge(const Candidate& x) {
    if (!may_continue()) return;
    const Consistency verdict = consistency(x, model_);
    if (!verdict.consistent) return;
    answer_.race = answer_.race || verdict.race;
    if (std::ranges::any_of(chosen_, [](const Path* path) { return path->blocked; })) {
      ++answer_.blocked;
      return;
    }
    ++answer_.executions;
    answer_.outcomes.insert(outcome(x));
  }

  std::map<std::string, std::int64_t> outcome(const Candidate& x) const {
    std::map<std::string, std::int64_t> all;
    for (std::size_t i = 0; i < x.events.size(); ++i) {
      const PathEvent& e = x.events[i];
      if (e.kind != Kind::Write || x.mo.after(i) != 0) continue;
      all[text_.locations[e.location]] = static_cast<std::int64_t>(e.value);
    }
    for (std::size_t thread = 0; thread < chosen_.size(); ++thread) {
      for (const auto& [name, value] : chosen_[thread]->registers) {
        all[fmt::format("{}:{}", thread, name)] = static_cast<std::int64_t>(value);
      }
    }
    std::map<std::string, std::int64_t> observed;
    for (const std::string& name : text_.observed) {
      const auto found = all.find(name);
      observed[name] = found == all.end() ? text_.unset_register : found->second;
    }
    return observed;
  }

  const LitmusText& text_;
  const MemoryModel model_;
  const Limits& limits_;
  std::vector<std::vector<Path>> paths_;
  std::vector<const Path*> chosen_;
  Enumeration answer_;
};

}  // namespace

Enumeration enumerate(const LitmusText& text, MemoryModel model, const Limits& limits) {
  return Enumerator{text, model, limits}.run();
}

std::uint64_t cost(const LitmusText& text) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 32;
  std::vector<std::uint64_t> stored(text.locations.size(), 1);
  for (const auto& thread : text.threads) {
    for_each_op(thread, [&](const Op& op) {
      const bool copies = op.kind == Op::Kind::FetchAdd || op.kind == Op::Kind::WriteRegister;
      if (op.stores()) stored[op.location] += copies ? 3 : 1;  // 3: copies of any value read
    });
  }
  std::uint64_t product = 1;
  for (const std::uint64_t stores : stored) {
    for (std::uint64_t i = 2; i < stores && product < kMany; ++i) product *= i;
  }
  for (const auto& thread : text.threads) {
    for_each_op(thread, [&](const Op& op) {
      if (op.reads() && product < kMany) product *= stored[op.location];
    });
  }
  return product;
}

}  // namespace perfring::model::reference
