#ifndef HARNESS_MODEL_LITMUS_LITMUS_H_
#define HARNESS_MODEL_LITMUS_LITMUS_H_

// Litmus tests in JSON, each with the outcomes that the memory model allows.

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"

namespace perfring::model {

// Registers ("1:r0") and locations ("x"), by name.
using Outcome = std::map<std::string, std::int64_t>;

struct Litmus {
  Program program;
  bool race = false;
  std::set<Outcome> allowed;  // unless there is a race
  std::optional<std::uint64_t> executions;
  std::vector<std::string> observed;
  std::int64_t unset_register = 0;
  std::vector<std::map<std::uint32_t, std::string>> registers;  // of each thread, by step's line
};

struct LitmusVerdict {
  std::set<Outcome> outcomes;
  Result result;
  bool counted = false;                  // the number of executions was known, and compared
  std::vector<std::string> differences;  // none: as it should be
};

// Throws UsageError, which names the program, the field and its fault.
std::vector<Litmus> read_litmus(std::istream& file);

// Not to be merged: that forgets the registers of threads that have ended.
LitmusVerdict run_litmus(const Litmus& litmus, ExploreOptions options = {});

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_LITMUS_H_
