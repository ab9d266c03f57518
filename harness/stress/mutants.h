#ifndef HARNESS_STRESS_MUTANTS_H_
#define HARNESS_STRESS_MUTANTS_H_

#include <span>
#include <string>

#include "harness/stress/run.h"

namespace perfring::stress {

// A part with one thing wrong in it, which must be found.
struct Mutant {
  std::string name;
  std::string fault;
  // What finds it: ThreadSanitizer, which sees a data race; the invariants, in any build.
  bool raced;
  bool violates;
  Outcome (*part)(const Run&);
};

std::span<const Mutant> mutants();
const Mutant* find_mutant(const std::string& name);

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_MUTANTS_H_
