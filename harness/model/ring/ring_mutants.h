#ifndef HARNESS_MODEL_RING_RING_MUTANTS_H_
#define HARNESS_MODEL_RING_RING_MUTANTS_H_

// The source that ships with one thing wrong beside it, or different: a policy for Ring or a Cpu
// for the kernel.

#include <span>
#include <string>
#include <string_view>

#include "harness/model/ring/ring_consumer.h"

namespace perfring::model {

struct RingMutant {
  std::string name;
  std::string what;
  Program (*make)(const RingOptions&);
  bool fails_in_a, fails_in_b;         // of 6 records and 3 drains
  std::string_view shows_in = "ring";  // the program of the catalogue
};

std::span<const RingMutant> ring_mutants();
// nullptr if no mutant has that name.
const RingMutant* find_ring_mutant(const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_RING_MUTANTS_H_
