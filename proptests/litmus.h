#ifndef PROPTESTS_LITMUS_H_
#define PROPTESTS_LITMUS_H_

// Generators of random litmus tests: 2 to 4 threads with plain and atomic accesses, atomic updates,
// fences of every kind, branches, assumptions and checkpoints that are true. Every register and
// location is observed. RapidCheck prints a counterexample as a program that `perfring check
// --litmus` runs.

#include <rapidcheck.h>

#include <iosfwd>

#include "harness/model/litmus/text.h"

namespace perfring::model {

void showValue(const LitmusText& text, std::ostream& out);

}  // namespace perfring::model

namespace perfring::proptests {

// Programs for RC11. If the reference would take too long to enumerate a program, its last
// operations are dropped.
rc::Gen<model::LitmusText> litmus_programs();

// Programs that the processors' models accept as well: atomic loads and stores, fences, data and
// control dependencies, and branches and assumptions, each of which is a control dependency.
rc::Gen<model::LitmusText> hardware_programs();

}  // namespace perfring::proptests

#endif  // PROPTESTS_LITMUS_H_
