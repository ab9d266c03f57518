#ifndef HARNESS_CLI_CHECK_LITMUS_H_
#define HARNESS_CLI_CHECK_LITMUS_H_

// What `perfring check --litmus` finds of one program.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/hardware/litmus_machine.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::cli {

struct CheckedLitmus {
  enum class Result : std::uint8_t {
    Agrees,
    Differs,
    NothingExpected,  // the file does not say what the memory model allows
    NotExpressible,   // the file says that the memory model cannot express it, and so does the run
    Refused,          // only the run does
    NotShown,         // a bound was reached, or no execution is complete
  };

  std::string name;
  Result result = Result::NotShown;
  model::LitmusVerdict verdict;
  std::vector<std::string> unassigned;  // registers, in words
  bool searched = false;  // the search of the ring's proofs was compared with the axioms
};

// A difference that was found outweighs a bound that was reached.
CheckedLitmus::Result result_of(const model::Litmus& litmus, model::MemoryModel memory_model,
                                const model::LitmusVerdict& verdict);

// Compares what the search that proves the ring (harness/model/hardware) has found with what the
// axioms allow, and adds the difference to the verdict, if there is one. Of a program with a branch
// the search may find less, and nothing else: it has no store that only its own value causes.
void compare_search(const model::MachineAnswer& found, bool has_branch,
                    model::LitmusVerdict& verdict);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_LITMUS_H_
