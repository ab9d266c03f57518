#ifndef HARNESS_MODEL_REFERENCE_AXIOMS_H_
#define HARNESS_MODEL_REFERENCE_AXIOMS_H_

// The axioms of four memory models, for the operations of litmus/text.h.

#include <cstdint>
#include <vector>

#include "harness/model/litmus/memory_model.h"
#include "harness/model/reference/path.h"
#include "harness/model/reference/relation.h"

namespace perfring::model::reference {

// A candidate execution: one path of each thread, with reads-from and modification order.
struct Candidate {
  explicit Candidate(std::size_t size)
      : sb{size}, rf{size}, mo{size}, data{size}, control{size}, rmw{size} {}

  std::vector<PathEvent> events;    // the locations' initial values first
  std::vector<std::size_t> thread;  // of each event; of an initial value 0xff
  Relation sb;                      // program order; an initial value is before every event
  Relation rf;
  Relation mo;
  Relation data;
  Relation control;
  Relation rmw;

  // These follow from the events.
  Events reads = 0;
  Events writes = 0;
  Events initial = 0;
  Relation same_location{0};
  Relation internal{0};  // of one thread, initial values are of none
};

// All four models require this of each location by itself: program order at one location, rf, mo
// and fr are acyclic together, and no write comes between an update and the write that it reads.
bool coherent(const Candidate& x);

struct Verdict {
  bool consistent = false;
  bool race = false;  // Rc11's
};

// Precondition: x is coherent.
Verdict verdict(const Candidate& x, MemoryModel model);

}  // namespace perfring::model::reference

#endif  // HARNESS_MODEL_REFERENCE_AXIOMS_H_
