#ifndef HARNESS_MODEL_ENGINE_RC11_H_
#define HARNESS_MODEL_ENGINE_RC11_H_

// The memory model: RC11 of Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing Sequential
// Consistency in C/C++11" (PLDI 2017), with the release sequences of C++20, as far as this checker
// supports it. Its axioms, and the code that enforces each:
//
//   NO-THIN-AIR  sb | rf is acyclic: an event is added after every event that it depends on, and a
//                read reads from an event that exists (explorer.cc).
//   COHERENCE    hb ; eco? is irreflexive: readable() and places().
//   ATOMICITY    no write is between an update and the write that it reads: readable() and
//                places().
//   SC           psc is acyclic, where between fences
//                psc = [F_sc] ; (hb | hb ; eco ; hb) ; [F_sc]: sc_consistent().
//
// Execution tracks hb and synchronization. A release store, or the stores after a release fence,
// head a release sequence that continues through updates. An acquire read of the sequence, or an
// acquire fence after such a read, synchronizes. Two conflicting accesses race if hb does not order
// them and one of them is not atomic; a race is an error. Beyond RC11, smp_wmb() is a release fence
// that passes on only the thread's own earlier stores, not its other events or its knowledge.

#include <cstddef>
#include <vector>

#include "harness/model/engine/execution.h"

namespace perfring::model {

// Returns the writes that the thread's next step, a read, may read from.
std::vector<EventId> readable(const Execution& x, std::size_t thread);

// Returns the writes that the thread's next step, a write, may follow in modification order.
std::vector<EventId> places(const Execution& x, std::size_t thread);

bool sc_consistent(const Execution& x);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_RC11_H_
