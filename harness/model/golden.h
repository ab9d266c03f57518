#ifndef HARNESS_MODEL_GOLDEN_H_
#define HARNESS_MODEL_GOLDEN_H_

#include <map>
#include <string>

namespace perfring::model {

// The shortest execution found of everything in the catalogue that is expected to be violated, in
// the first form in which it is: the contents of each file, a program's, by its path below golden/.
// Lines of the source are left out, so that it can be edited.
std::map<std::string, std::string> golden_traces();

}  // namespace perfring::model

#endif  // HARNESS_MODEL_GOLDEN_H_
