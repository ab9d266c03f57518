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
#include "harness/model/litmus/memory_model.h"
#include "harness/model/litmus/text.h"

namespace perfring::model {

// Registers ("1:r0") and locations ("x"), by name.
using LitmusOutcome = std::map<std::string, std::int64_t>;

// {"0:r0":1,"x":2}
nlohmann::ordered_json json_of(const LitmusOutcome& outcome);

// A file's expectation of a program under one memory model.
struct Expectation {
  std::optional<std::set<LitmusOutcome>> allowed;
  std::optional<std::uint64_t> executions;
};

struct Litmus {
  LitmusText text;
  Program program;  // of the text
  bool race = false;
  bool race_given = false;                      // the file says whether there is one
  std::map<MemoryModel, Expectation> expected;  // none where there is a race
  std::set<MemoryModel> not_expressible;        // the file has null as what they allow
  // Registers that are used though no operation before assigns them, in words: a misspelt one drops
  // a dependency. No error, as `unset_register` is their value.
  std::vector<std::string> unassigned;
};

struct LitmusVerdict {
  std::set<LitmusOutcome> outcomes;
  Result result;
  bool compared = false;                 // with what the file says of the memory model
  bool counted = false;                  // the number of executions was known, and compared
  std::vector<std::string> differences;  // empty if all agree
  std::string refused;                   // the reason, if the memory model cannot run it
};

// The engine's form of a text. A read's line is the number of its operation.
Program program_of(const LitmusText& text);
// The values observed in a complete execution of that program.
LitmusOutcome outcome_of(const LitmusText& text, const Execution& x);
// The registers that the reads of a thread assign, by the numbers of their operations.
std::map<std::uint32_t, std::string> register_names(const std::vector<Op>& ops);
// The values in `all` that the text observes.
LitmusOutcome observed_of(const LitmusText& text, const LitmusOutcome& all);

// From a list of programs, or an object with such a list as `programs`. Throws UsageError, which
// names the program, the field and its fault.
std::vector<Litmus> read_litmus(std::istream& file);

// Runs it under RC11, by the engine. `options` must not merge: that forgets the registers of
// threads that have ended.
LitmusVerdict run_litmus(const Litmus& litmus, ExploreOptions options = {});
// Runs it under any of the memory models: RC11 by the engine, the others by the axioms
// (harness/model/reference). An operation that the model does not know is not an error: the verdict
// has the reason for which the program was refused.
LitmusVerdict run_litmus(const Litmus& litmus, MemoryModel memory_model,
                         const ExploreOptions& options = {});
// Compares a complete run with the file's expectation for the memory model, if it has one.
void compare(const Litmus& litmus, MemoryModel memory_model, LitmusVerdict& verdict);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_LITMUS_H_
