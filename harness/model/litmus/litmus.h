#ifndef HARNESS_MODEL_LITMUS_LITMUS_H_
#define HARNESS_MODEL_LITMUS_LITMUS_H_

// Litmus tests in JSON, with the outcomes that the memory models allow.

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/model/engine/execution.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/litmus/text.h"

namespace perfring::model {

// The values of registers ("1:r0") and locations ("x"), by name.
using LitmusOutcome = std::map<std::string, std::int64_t>;

// Returns JSON: {"0:r0":1,"x":2}.
nlohmann::ordered_json json_of(const LitmusOutcome& outcome);

// A file's expectation of a program under one memory model.
struct Expectation {
  std::optional<std::set<LitmusOutcome>> allowed;
  std::optional<std::uint64_t> executions;
};

struct Litmus {
  LitmusText text;
  Program program;  // program_of(text)
  bool race = false;
  bool race_given = false;                      // the file has the field "race"
  std::map<MemoryModel, Expectation> expected;  // Rc11 is missing if there is a race
  std::set<MemoryModel> not_expressible;        // the file has null as the allowed outcomes
  // A message for each register that is used though no operation before the use assigns it: a
  // misspelled name drops a dependency. It is not an error, because `unset_register` is the
  // register's value.
  std::vector<std::string> unassigned;
};

struct LitmusVerdict {
  std::set<LitmusOutcome> outcomes;
  Result result;
  bool compared = false;                 // the file has an expectation for the memory model
  bool counted = false;                  // the file has the number of executions
  std::vector<std::string> differences;  // empty if all agree
  std::string refused;                   // the reason, if the memory model cannot run it
};

// Returns the text as a program for the engine. A read's line is the number of its operation.
Program program_of(const LitmusText& text);
// Returns the observed values of a complete execution of that program.
LitmusOutcome outcome_of(const LitmusText& text, const Execution& x);
// Returns the register that each read of a thread assigns, by the number of the read's operation.
std::map<std::uint32_t, std::string> register_names(const std::vector<Op>& ops);
// Returns the values in `all` that the text observes.
LitmusOutcome observed_of(const LitmusText& text, const LitmusOutcome& all);

// Reads a list of programs, or an object with such a list as `programs`. Throws a UsageError that
// names the program, the field and its fault.
std::vector<Litmus> read_litmus(std::istream& file);

// Runs the program under RC11, by the engine. `options` must not merge, because merging drops the
// registers of threads that have ended.
LitmusVerdict run_litmus(const Litmus& litmus, ExploreOptions options = {});
// Runs the program under any memory model: RC11 by the engine, the others by the axioms
// (harness/model/reference). An operation that the model does not support is not an error: the
// verdict has the reason in `refused`.
LitmusVerdict run_litmus(const Litmus& litmus, MemoryModel memory_model,
                         const ExploreOptions& options = {});
// Compares a complete run with the file's expectation for the memory model, if there is one.
void compare(const Litmus& litmus, MemoryModel memory_model, LitmusVerdict& verdict);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_LITMUS_H_
