#include "harness/model/hardware/graph.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace perfring::model {
namespace {

// Returns the number of the graph's accesses on which the cause depends, for each thread.
std::vector<std::size_t> prefixes(const Program& program, const Graph& graph,
                                  const FailedCheck& failed) {
  const std::vector<Access>& accesses = graph.accesses();
  std::vector<std::size_t> upto(program.threads.size(), failed.at_end ? accesses.size() : 0);
  if (failed.at_end) return upto;
  upto[failed.cause.thread] = failed.accesses;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const Access& access = accesses[i];
      if (i >= upto[access.thread] || access.is_write || access.source >= kAwaited) continue;
      std::size_t& of_source = upto[accesses[access.source].thread];
      more = more || of_source <= access.source;
      of_source = std::max(of_source, access.source + 1);
    }
  }
  return upto;
}

struct Item {
  bool fence;
  std::size_t number;  // an index into the graph's accesses or fences
};

// Lists the items as memory may have seen them. A thread keeps its program order where the graph
// allows it, so an access overtakes another one only if it must.
class MemoryOrder {
 public:
  MemoryOrder(const Graph& graph, const std::vector<std::size_t>& upto)
      : graph_{graph}, seen_(graph.accesses().size(), true), threads_(upto.size()) {
    const std::vector<Access>& accesses = graph.accesses();
    std::vector<std::tuple<std::size_t, bool, std::size_t>> all;  // a fence sorts before its access
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      if (i >= upto[accesses[i].thread]) continue;
      seen_[i] = false;
      all.emplace_back(i, true, i);
    }
    for (std::size_t i = 0; i < graph.fences().size(); ++i) {
      const Fence& fence = graph.fences()[i];
      if (fence.accesses < upto[fence.thread]) all.emplace_back(fence.accesses, false, i);
    }
    std::ranges::sort(all);
    for (const auto& [place, access, number] : all) {
      const std::size_t thread = access ? accesses[number].thread : graph.fences()[number].thread;
      threads_[thread].push_back({!access, number});
    }
  }

  std::vector<Item> list() {
    std::vector<Item> listed;
    std::size_t thread = 0;
    while (const auto next = next_of(thread)) {
      thread = next->thread;
      std::vector<Item>& left = threads_[next->thread];
      listed.push_back(left[next->place]);
      if (!listed.back().fence) seen_[listed.back().number] = true;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(next->place));
    }
    return listed;
  }

 private:
  struct Next {
    std::size_t thread;
    std::size_t place;  // an index into the thread's remaining items
  };

  bool ready(const Item& item) const {
    if (item.fence) return false;  // a fence stays between the accesses around it
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i] && graph_.comes_before(i, item.number)) return false;
    }
    return true;
  }

  // Returns the next item to list: the one at the least distance from the next item of its thread,
  // and among equals one of the thread `current`, if possible.
  std::optional<Next> next_of(std::size_t current) const {
    std::size_t longest = 0;
    for (const auto& left : threads_) longest = std::max(longest, left.size());
    for (std::size_t place = 0; place < longest; ++place) {
      for (std::size_t i = 0; i < threads_.size(); ++i) {
        const std::size_t thread = (current + i) % threads_.size();
        const std::vector<Item>& left = threads_[thread];
        if (place >= left.size()) continue;
        if (ready(left[place]) || (place == 0 && left[place].fence)) return Next{thread, place};
      }
    }
    return std::nullopt;
  }

  const Graph& graph_;
  std::vector<bool> seen_;                  // the accesses that are listed or left out
  std::vector<std::vector<Item>> threads_;  // the remaining items, in program order
};

TraceEvent event_of(const Program& program, const Graph& graph, const Item& item,
                    const std::vector<std::size_t>& numbers) {
  const Step& step =
      item.fence ? *graph.fences()[item.number].step : *graph.accesses()[item.number].step;
  TraceEvent event;
  event.kind = step.kind;
  event.order = step.order;
  event.where = step.where;
  event.thread =
      item.fence ? graph.fences()[item.number].thread : graph.accesses()[item.number].thread;
  if (item.fence) return event;
  const Access& access = graph.accesses()[item.number];
  event.location = program.locations[access.location].name;
  if (access.is_write) {
    event.written = access.value;
    event.after = 0;
    for (const std::size_t store : graph.stores(access.location)) {
      if (store == item.number) break;
      if (numbers[store] != 0) event.after = numbers[store];
    }
  } else {
    event.read = access.value;
    event.reads_from = access.source < kAwaited ? numbers[access.source] : 0;
  }
  for (std::size_t i = 0; i < item.number && !event.overtakes; ++i) {
    const bool own = graph.accesses()[i].thread == access.thread;
    if (own && numbers[i] > numbers[item.number]) event.overtakes = numbers[i];
  }
  return event;
}

// Returns the number of the thread's last access before the check, if there is one.
std::vector<std::size_t> before_check(const Graph& graph, const FailedCheck& failed,
                                      const std::vector<std::size_t>& numbers) {
  for (std::size_t i = failed.at_end ? 0 : failed.accesses; i-- > 0;) {
    if (graph.accesses()[i].thread == failed.cause.thread) return {numbers[i]};
  }
  return {};
}

}  // namespace

Trace graph_trace(const Program& program, const Graph& graph, const FailedCheck& failed) {
  Trace trace;
  trace.cause = failed.cause;
  trace.execution_events = graph.accesses().size();
  trace.at_end = failed.at_end;
  for (std::size_t i = 0; i < program.threads.size(); ++i) {
    const bool named = i < program.thread_names.size();
    trace.threads.push_back(named ? program.thread_names[i] : "thread " + std::to_string(i));
  }
  if (program.finally) trace.threads.emplace_back("at the end");
  const std::vector<Item> items = MemoryOrder{graph, prefixes(program, graph, failed)}.list();
  std::vector<std::size_t> numbers(graph.accesses().size(), 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].fence) numbers[items[i].number] = i + 1;
  }
  for (const Item& item : items) trace.events.push_back(event_of(program, graph, item, numbers));
  trace.violated = before_check(graph, failed, numbers);
  return trace;
}

}  // namespace perfring::model
