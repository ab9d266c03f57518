#include "harness/model/hardware/graph.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace perfring::model {
namespace {

// Between a graph's accesses: of each, those that it leads to.
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
  // One step of each.
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
  bool acyclic() const {
    const Relation all = transitive();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (all[i][i]) return false;
    }
    return true;
  }

 private:
  std::vector<EventSet> rows_;
};

struct Edges {
  Relation full;       // smp_mb() between them
  Relation stores;     // smp_wmb()
  Relation released;   // to a store that releases
  Relation overtaken;  // coe | fre
  Relation read_from;  // rfe
};

// Those of one thread, first before second.
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

// `second` is a store of another thread to the location of `first`.
void add_store(const Graph& graph, std::size_t first, std::size_t second, Edges& edges) {
  const Access& a = graph.accesses()[first];
  if (a.awaits()) return;
  const std::size_t seen = graph.place_of(a.is_write ? first : a.source, a.location);
  if (seen < graph.place_of(second, a.location)) edges.overtaken[first].set(second);
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
  if (!happens_before.acyclic()) return false;
  return (propagates * edges.full * happens_before.transitive().or_same()).acyclic();
}

}  // namespace perfring::model
