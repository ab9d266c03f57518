#ifndef PROPTESTS_LITMUS_H_
#define PROPTESTS_LITMUS_H_

// Random litmus tests: 2 to 4 threads of plain and atomic accesses, updates, fences of every kind,
// branches, assumptions and true checkpoints, all of whose registers and locations are observed. A
// counterexample is printed as a program for `perfring check --litmus`.

#include <rapidcheck.h>

#include <iosfwd>

#include "harness/model/litmus/text.h"

namespace perfring::model {

void showValue(const LitmusText& text, std::ostream& out);

}  // namespace perfring::model

namespace perfring::proptests {

// For RC11. Of programs that the reference would take long to enumerate the last operations are
// left out.
rc::Gen<model::LitmusText> litmus_programs();

// For the processors' models, too: atomic loads and stores, fences, data and control dependencies,
// branches and assumptions, each a control dependency.
rc::Gen<model::LitmusText> hardware_programs();

}  // namespace perfring::proptests

#endif  // PROPTESTS_LITMUS_H_
