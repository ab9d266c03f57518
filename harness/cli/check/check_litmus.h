#ifndef HARNESS_CLI_CHECK_CHECK_LITMUS_H_
#define HARNESS_CLI_CHECK_CHECK_LITMUS_H_

// The result of `perfring check --litmus` for one program.

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
    NothingExpected,  // the file has no expected result for this memory model
    NotExpressible,   // file and run agree that the memory model cannot express the program
    Refused,          // the run says so, but the file does not
    NotShown,         // a bound was reached, or no execution is complete
  };

  std::string name;
  Result result = Result::NotShown;
  model::LitmusVerdict verdict;
  std::vector<std::string> unassigned;  // a message for each register that is never assigned
  bool searched = false;  // whether compare_search() compared the ring's search with the axioms
};

// Classifies a verdict. A difference takes precedence over a bound that was reached.
CheckedLitmus::Result result_of(const model::Litmus& litmus, model::MemoryModel memory_model,
                                const model::LitmusVerdict& verdict);

// Compares the outcomes of the search that proves the ring (harness/model/hardware) with the
// outcomes that the axioms allow, and adds any difference to the verdict. In a program with a
// branch the search may find a subset: it has no store that depends only on its own value.
void compare_search(const model::MachineAnswer& found, bool has_branch,
                    model::LitmusVerdict& verdict);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_CHECK_LITMUS_H_
