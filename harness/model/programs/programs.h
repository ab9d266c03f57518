#ifndef HARNESS_MODEL_PROGRAMS_PROGRAMS_H_
#define HARNESS_MODEL_PROGRAMS_PROGRAMS_H_

// Algorithms whose verdicts are known, right and wrong in the way that is usual.

#include <span>
#include <string>

#include "harness/model/engine/program.h"

namespace perfring::model {

struct KnownProgram {
  std::string name;
  std::string what;
  Program (*make)();
  std::string violated;  // what a wrong one violates
};

std::span<const KnownProgram> known_programs();

}  // namespace perfring::model

#endif  // HARNESS_MODEL_PROGRAMS_PROGRAMS_H_
