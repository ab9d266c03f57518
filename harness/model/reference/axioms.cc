#include "harness/model/reference/axioms.h"

#include <cstddef>

#include "harness/model/engine/usage_error.h"

namespace perfring::model::reference {
namespace {

using Kind = PathEvent::Kind;
using Order = Op::Order;

bool acquires(Order order) {
  return order == Order::Acquire || order == Order::AcquireRelease ||
         order == Order::SequentiallyConsistent;
}
bool releases(Order order) {
  return order == Order::Release || order == Order::AcquireRelease ||
         order == Order::SequentiallyConsistent;
}

// Returns the events for which `is` holds.
template <class F>
Events events_where(const Candidate& x, F is) {
  Events set = 0;
  for (std::size_t i = 0; i < x.events.size(); ++i) {
    if (is(x.events[i])) set |= event(i);
  }
  return set;
}
Events fences(const Candidate& x, Order order) {
  return events_where(
      x, [&](const PathEvent& e) { return e.kind == Kind::Fence && e.order == order; });
}
Events of_order(const Candidate& x, Kind kind, Order order) {
  return events_where(x, [&](const PathEvent& e) { return e.kind == kind && e.order == order; });
}

Relation identity(const Candidate& x, Events events) {
  Relation same{x.events.size()};
  for_each(events, [&](std::size_t i) { same.add(i, i); });
  return same;
}

Relation from_read(const Candidate& x) {
  return x.rf.inverse() * x.mo;
}

// from ; po ; [fence] ; po ; to
Relation fenced(const Candidate& x, Events from, Events fence, Events to) {
  return x.sb.between(from, fence) * x.sb.between(fence, to);
}

struct Rc11Relations {
  Relation hb;
  Relation known;  // hb, and the stores that smp_wmb() makes known
};

Rc11Relations rc11_relations(const Candidate& x) {
  const Events atomic = events_where(
      x, [](const PathEvent& e) { return e.kind != Kind::Fence && e.order != Order::NonAtomic; });
  const Events writes = x.writes & atomic & ~x.initial;
  const Events acquire = events_where(x, [](const PathEvent& e) { return acquires(e.order); });
  const Events release = events_where(x, [](const PathEvent& e) { return releases(e.order); });
  const Events all_fences =
      events_where(x, [](const PathEvent& e) { return e.kind == Kind::Fence; });
  // From a write, through its release sequence, to the event that acquires it.
  const Relation taken =
      (x.rf * x.rmw).transitive().or_same().between(writes, writes) *
      x.rf.between(writes, x.reads & atomic) *
      (identity(x, acquire & x.reads) | x.sb.between(x.reads & atomic, acquire & all_fences));
  const Relation heads = identity(x, release & writes) | x.sb.between(release & all_fences, writes);
  const Relation hb = (x.sb | heads * taken).transitive();
  const Relation passed_on =
      fenced(x, x.writes & ~x.initial, fences(x, Order::StoreStore), writes) * taken * hb.or_same();
  return {hb, hb | passed_on};
}

bool rc11_races(const Candidate& x, const Relation& known) {
  const Events accesses = (x.reads | x.writes) & ~x.initial;
  const Events plain =
      events_where(x, [](const PathEvent& e) { return e.order == Order::NonAtomic; });
  const Relation ordered = known | known.inverse();
  const Relation conflicts = (x.same_location - x.internal).between(accesses, accesses);
  bool race = false;
  for_each(accesses, [&](std::size_t i) {
    const Events writes = (x.writes & event(i)) != 0 ? accesses : x.writes;
    const Events racing = (plain & event(i)) != 0 ? accesses : plain;
    race = race || (conflicts.after(i) & ~ordered.after(i) & writes & racing) != 0;
  });
  return race;
}

Consistency rc11(const Candidate& x) {
  if (!(x.sb | x.rf).acyclic()) return {};
  const auto [hb, known] = rc11_relations(x);
  if (!hb.irreflexive()) return {};
  const Relation eco = (x.rf | x.mo | from_read(x)).transitive();
  if (!(known * eco).irreflexive()) return {};
  const Events sc = fences(x, Order::SequentiallyConsistent);
  if (!(hb | hb * eco * hb).between(sc, sc).acyclic()) return {};
  return {.consistent = true, .race = rc11_races(x, known)};
}

// Returns the program order of each thread's accesses, without fences.
Relation program_order(const Candidate& x) {
  const Events all = (x.reads | x.writes) & ~x.initial;
  return x.sb.between(all, all);
}

Consistency aarch64(const Candidate& x) {
  const Events m = (x.reads | x.writes) & ~x.initial;
  const Events r = x.reads;
  const Events w = x.writes & ~x.initial;
  const Events a = of_order(x, Kind::Read, Order::Acquire);
  const Events l = of_order(x, Kind::Write, Order::Release) & ~x.initial;
  const Relation po = program_order(x);
  const Relation at_location = po & x.same_location;
  // From a write to the reads of its location, with no other write to it between them.
  const Relation lrs =
      at_location.between(w, r) - at_location.between(w, w) * at_location.between(w, r);
  const Events full = fences(x, Order::SequentiallyConsistent) | fences(x, Order::Release) |
                      fences(x, Order::AcquireRelease);  // dmb ish
  const Relation lob = at_location.between(m, w) | x.data | x.control | x.data * lrs |
                       fenced(x, m, full, m) | fenced(x, r, fences(x, Order::Acquire), m) |
                       fenced(x, w, fences(x, Order::StoreStore), w) | po.between(a, m) |
                       po.between(m, l) | po.between(l, a);
  const Relation observed = (x.rf | x.mo | from_read(x)) - x.internal;
  return {.consistent = (lob | observed).acyclic()};
}

Consistency riscv(const Candidate& x) {
  const Events m = (x.reads | x.writes) & ~x.initial;
  const Events r = x.reads;
  const Events w = x.writes & ~x.initial;
  const Relation po = program_order(x);
  // A load that acquires is a load followed by "fence r,rw", and a store that releases is a store
  // preceded by "fence rw,w". These fences order their neighbors, too.
  const Events a = of_order(x, Kind::Read, Order::Acquire);
  const Events l = of_order(x, Kind::Write, Order::Release) & ~x.initial;
  const Relation acquired = po.between(r, a).or_same().between(r, a) * po.between(a, m);
  const Relation released = po.between(m, l) * po.between(l, w).or_same().between(l, w);
  const Events tso = fences(x, Order::AcquireRelease);
  const Relation ppo = (po & x.same_location).between(m, w) |
                       fenced(x, m, fences(x, Order::SequentiallyConsistent), m) |
                       fenced(x, r, fences(x, Order::Acquire) | tso, m) |
                       fenced(x, m, fences(x, Order::Release), w) |
                       fenced(x, w, fences(x, Order::StoreStore) | tso, w) | acquired | released |
                       x.data | x.control | x.data * (x.rf & x.internal);
  return {.consistent = (ppo | (x.rf - x.internal) | x.mo | from_read(x)).acyclic()};
}

Consistency lkmm(const Candidate& x) {
  const Events m = (x.reads | x.writes) & ~x.initial;
  const Events w = x.writes & ~x.initial;
  if ((fences(x, Order::Release) | fences(x, Order::AcquireRelease)) != 0) {
    throw UsageError{"the kernel has no release fence: use smp_mb (sc), smp_wmb (wmb)"};
  }
  const Relation po = program_order(x);
  const Relation fr = from_read(x);
  const Relation external_rf = x.rf - x.internal;
  const Relation mb = fenced(x, m, fences(x, Order::SequentiallyConsistent), m);
  const Relation wmb = fenced(x, w, fences(x, Order::StoreStore), w);
  const Relation rmb = fenced(x, x.reads, fences(x, Order::Acquire), x.reads);
  const Relation before_release = po.between(m, of_order(x, Kind::Write, Order::Release));
  const Relation fence =
      mb | po.between(of_order(x, Kind::Read, Order::Acquire), m) | before_release | wmb | rmb;
  const Relation ppo =
      x.data | x.control | ((x.mo | fr) & x.internal) | x.data * (x.rf & x.internal) | fence;
  const Relation cumul = external_rf.or_same() * (mb | before_release) | wmb;
  const Relation prop =
      ((x.mo | fr) - x.internal).or_same() * cumul.transitive().or_same() * external_rf.or_same();
  Relation hb = ppo | external_rf;
  const Relation inside = prop & x.internal;
  for (std::size_t i = 0; i < inside.size(); ++i) hb.add_all(i, inside.after(i) & ~event(i));
  if (!hb.acyclic()) return {};
  return {.consistent = (prop * mb * hb.transitive().or_same()).acyclic()};
}

}  // namespace

bool coherent(const Candidate& x) {
  const Relation fr = from_read(x);
  if (!((x.sb & x.same_location) | x.rf | x.mo | fr).acyclic()) return false;
  if (x.rmw.empty()) return true;
  return (x.rmw & fr * x.mo).empty();
}

Consistency consistency(const Candidate& x, MemoryModel model) {
  switch (model) {
    case MemoryModel::Rc11:
      return rc11(x);
    case MemoryModel::AArch64:
      return aarch64(x);
    case MemoryModel::RiscV:
      return riscv(x);
    case MemoryModel::Lkmm:
      return lkmm(x);
  }
  return {};
}

}  // namespace perfring::model::reference
