#ifndef HARNESS_MODEL_ENGINE_RC11_H_
#define HARNESS_MODEL_ENGINE_RC11_H_

// The memory model: RC11 of Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing Sequential
// Consistency in C/C++11" (PLDI 2017), with the release sequences of C++20, for what this checker
// supports. Its axioms, and where each is kept:
//
//   NO-THIN-AIR  sb | rf is acyclic: an event is added after all that it depends on, and a read
//                reads from an event that is there (explorer.cc).
//   COHERENCE    hb ; eco? is irreflexive: readable() and places().
//   ATOMICITY    nothing comes between an update and what it reads: readable() and places().
//   SC           psc is acyclic, where between fences
//                psc = [F_sc] ; (hb | hb ; eco ; hb) ; [F_sc]: sc_consistent().
//
// hb and synchronization are in Execution: a release store, or the stores after a release fence,
// head a release sequence that goes on through updates; an acquire read of it, or an acquire fence
// after such a read, synchronizes. Conflicting accesses that hb does not order, one of them not
// atomic, are a race, and a race is an error. Beyond RC11, smp_wmb() is a release fence that
// passes on the thread's own earlier stores, and nothing else that the thread did or knows.

#include <vector>

#include "harness/model/engine/execution.h"

namespace perfring::model {

// The writes that the thread's next step, a read, may read from.
std::vector<EventId> readable(const Execution& x, std::size_t thread);

// After which writes in modification order the thread's next step, a write, may come.
std::vector<EventId> places(const Execution& x, std::size_t thread);

bool sc_consistent(const Execution& x);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_RC11_H_
