#ifndef HARNESS_MODEL_REFERENCE_AXIOMS_H_
#define HARNESS_MODEL_REFERENCE_AXIOMS_H_

// The axioms of four memory models, for the operations of litmus/text.h, and the candidate
// executions that they judge. path.cc computes the paths of a thread by itself, one for each
// sequence of values that its reads may return; a candidate combines one path of each thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/litmus/memory_model.h"
#include "harness/model/litmus/text.h"
#include "harness/model/reference/relation.h"

namespace perfring::model::reference {

// An event of a path. An update is a read directly followed by a write.
struct PathEvent {
  enum class Kind : std::uint8_t { Read, Write, Fence };

  Kind kind = Kind::Fence;
  Op::Order order = Op::Order::Relaxed;
  std::uint16_t location = 0;
  std::uint64_t value = 0;  // the value read or written
  bool update = false;      // a write: the preceding event is the update's read
};

struct Path {
  std::vector<PathEvent> events;
  // Pairs of a read and a write of the thread, as indexes into `events`.
  std::vector<std::pair<std::size_t, std::size_t>> data;
  std::vector<std::pair<std::size_t, std::size_t>> control;
  std::map<std::string, std::uint64_t> registers;
  bool blocked = false;  // an assumption does not hold
};

// The values that reads of each location may return.
using Values = std::vector<std::set<std::uint64_t>>;

std::vector<Path> paths_of(const std::vector<Op>& thread, std::uint64_t unset,
                           const Values& values);

// Returns the values that can be stored to each location in any execution of the test.
Values values_of(const LitmusText& text);

// A candidate execution: one path of each thread, with reads-from and modification order.
struct Candidate {
  explicit Candidate(std::size_t size)
      : sb{size}, rf{size}, mo{size}, data{size}, control{size}, rmw{size} {}

  std::vector<PathEvent> events;    // the locations' initial values first
  std::vector<std::size_t> thread;  // the thread of each event; 0xff for an initial value
  Relation sb;                      // program order; an initial value is before every event
  Relation rf;
  Relation mo;
  Relation data;
  Relation control;
  Relation rmw;

  // Derived from the events.
  Events reads = 0;
  Events writes = 0;
  Events initial = 0;
  Relation same_location{0};
  Relation internal{0};  // both in one thread; an initial value is in none
};

// All four models require this of each location: program order at the location, rf, mo and fr are
// acyclic together, and no write is between an update and the write that it reads.
bool coherent(const Candidate& x);

struct Consistency {
  bool consistent = false;
  bool race = false;  // Rc11 only
};

// Precondition: x is coherent.
Consistency consistency(const Candidate& x, MemoryModel model);

}  // namespace perfring::model::reference

#endif  // HARNESS_MODEL_REFERENCE_AXIOMS_H_
