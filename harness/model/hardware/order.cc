#include "harness/model/hardware/order.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "harness/model/hardware/graph.h"

namespace perfring::model {

// AArch64: a store with a dependency passes it on to the reads that follow (data; lrs), and a read
// that acquires waits for stores that release. RISC-V and LKMM: data; rfi, which is the same if the
// read takes the store's value; other reads are ordered by their source.
EventSet ThreadOrder::before_read(MemoryModel machine, const Step& read, std::size_t location,
                                  bool forwarded) const {
  EventSet before = before_reads_;
  const auto last = std::ranges::find(stored_, location, &Stored::location);
  if (last != stored_.end() && (forwarded || machine == MemoryModel::AArch64)) {
    before |= last->data;
  }
  if (machine == MemoryModel::AArch64 && acquires(read.order)) before |= releasing_;
  return before;
}

EventSet ThreadOrder::before_write(MemoryModel machine, const Step& write, std::size_t location) {
  if (releases(write.order) && !has_ordered_accesses(machine)) {
    add_barrier(barrier_of(machine, Order::Release));
  }
  EventSet before = before_writes_;
  if (location < at_location_.size()) before |= at_location_[location];
  if (releases(write.order)) before |= reads_ | writes_;
  if (write.depends_on != 0) before.set(read_number(write.depends_on));
  return before;
}

void ThreadOrder::add_read(MemoryModel machine, const Step& read, std::size_t location,
                           std::size_t event) {
  if (at_location_.size() <= location) at_location_.resize(location + 1);
  at_location_[location].set(event);
  reads_.set(event);
  reads_in_order_.push_back(event);
  if (!acquires(read.order)) return;
  if (has_ordered_accesses(machine)) {
    before_reads_.set(event);
    before_writes_.set(event);
  } else {
    add_barrier(barrier_of(machine, Order::Acquire));
  }
}

void ThreadOrder::add_write(const Step& write, std::size_t location, std::size_t event) {
  if (at_location_.size() <= location) at_location_.resize(location + 1);
  at_location_[location].set(event);
  writes_.set(event);
  if (releases(write.order)) releasing_.set(event);
  auto last = std::ranges::find(stored_, location, &Stored::location);
  if (last == stored_.end()) last = stored_.insert(last, Stored{location, event, {}});
  last->event = event;
  last->data.reset();
  if (write.depends_on != 0) last->data.set(read_number(write.depends_on));
}

void ThreadOrder::add_barrier(const Barrier& barrier) {
  if (barrier.reads_reads) before_reads_ |= reads_;
  if (barrier.reads_writes) before_writes_ |= reads_;
  if (barrier.writes_reads) before_reads_ |= writes_;
  if (barrier.writes_writes) before_writes_ |= writes_;
}

namespace {

// A relation between a graph's accesses: for each access, the set that it leads to.
class Relation {
 public:
  explicit Relation(std::size_t size) : rows_(size) {}

  EventSet& operator[](std::size_t from) { return rows_[from]; }
  const EventSet& operator[](std::size_t from) const { return rows_[from]; }

  Relation operator|(const Relation& other) const {
    Relation both = *this;
    for (std::size_t i = 0; i < rows_.size(); ++i) both[i] |= other[i];
    return both;
  }
  // A step of this relation, then a step of `next`.
  Relation operator*(const Relation& next) const {
    Relation through{rows_.size()};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < rows_.size(); ++j) {
        if (rows_[i][j]) through[i] |= next[j];
      }
    }
    return through;
  }
  Relation or_same() const {
    Relation with = *this;
    for (std::size_t i = 0; i < rows_.size(); ++i) with[i].set(i);
    return with;
  }
  Relation transitive() const {
    Relation all = *this;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      for (EventSet& row : all.rows_) {
        if (row[k]) row |= all[k];
      }
    }
    return all;
  }
  bool irreflexive() const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i][i]) return false;
    }
    return true;
  }
  bool acyclic() const { return transitive().irreflexive(); }

 private:
  std::vector<EventSet> rows_;
};

struct Edges {
  Relation full;       // smp_mb() between the two
  Relation stores;     // smp_wmb()
  Relation released;   // to a store that releases
  Relation overtaken;  // coe | fre
  Relation read_from;  // rfe
};

// Adds the edges between two accesses of one thread, `first` before `second`.
void add_own(const Graph& graph, std::size_t first, std::size_t second, Edges& edges) {
  const Access &a = graph.accesses()[first], &b = graph.accesses()[second];
  for (const Fence& fence : graph.fences()) {
    if (fence.thread != a.thread || fence.accesses <= first || fence.accesses > second) continue;
    if (fence.step->order == Order::SequentiallyConsistent) edges.full[first].set(second);
    if (fence.step->order == Order::StoreStore && a.is_write && b.is_write) {
      edges.stores[first].set(second);
    }
  }
  if (b.is_write && releases(b.step->order)) edges.released[first].set(second);
}

// Adds the edge from `first` to `second`, a store of another thread to the same location.
void add_store(const Graph& graph, std::size_t first, std::size_t second, Edges& edges) {
  const Access& a = graph.accesses()[first];
  if (a.awaits()) return;
  const std::size_t read_place = graph.place_of(a.is_write ? first : a.source, a.location);
  if (read_place < graph.place_of(second, a.location)) edges.overtaken[first].set(second);
}

Edges edges_of(const Graph& graph) {
  const std::vector<Access>& accesses = graph.accesses();
  const Relation none{accesses.size()};
  Edges edges{none, none, none, none, none};
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    for (std::size_t j = 0; j < accesses.size(); ++j) {
      const Access &a = accesses[i], &b = accesses[j];
      if (a.thread == b.thread) {
        if (i < j) add_own(graph, i, j, edges);
      } else if (b.is_write && a.location == b.location) {
        add_store(graph, i, j, edges);
      } else if (!b.is_write && b.source == i) {
        edges.read_from[i].set(j);
      }
    }
  }
  return edges;
}

}  // namespace

bool lkmm_allows(const Graph& graph) {
  const std::vector<Access>& accesses = graph.accesses();
  const Edges edges = edges_of(graph);
  const Relation cumulative =
      edges.read_from.or_same() * (edges.full | edges.released) | edges.stores;
  const Relation propagates =
      edges.overtaken.or_same() * cumulative.transitive().or_same() * edges.read_from.or_same();
  Relation happens_before{accesses.size()};
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    for (std::size_t j = 0; j < accesses.size(); ++j) {
      const bool own = i != j && accesses[i].thread == accesses[j].thread;
      if (graph.comes_before(i, j) || (own && propagates[i][j])) happens_before[i].set(j);
    }
  }
  const Relation reached = happens_before.transitive();
  if (!reached.irreflexive()) return false;
  return (propagates * edges.full * reached.or_same()).acyclic();
}

}  // namespace perfring::model
