#ifndef HARNESS_CLI_CHECK_LITMUS_H_
#define HARNESS_CLI_CHECK_LITMUS_H_

// `perfring check --litmus`.

#include <atomic>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "harness/cli/check.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/program/verdict.h"

namespace perfring::cli {

struct CheckedLitmus {
  enum class Result : std::uint8_t {
    Agrees,
    Differs,
    NothingExpected,  // the file does not say what the memory model allows
    NotExpressible,   // the file says that the memory model cannot express it, and so does the run
    Refused,          // only the run does
    NotShown,         // a bound was reached
  };

  std::string name;
  Result result = Result::NotShown;
  model::LitmusVerdict verdict;
};

struct CheckedLitmusFile {
  model::MemoryModel memory_model = model::MemoryModel::Rc11;
  std::vector<CheckedLitmus> programs;
};

// Runs the programs of a file's text. An error names the file, the program and the field.
std::expected<CheckedLitmusFile, std::string> run_litmus_text(const CheckOptions& options,
                                                              const std::string& text,
                                                              const std::atomic<bool>& stop,
                                                              const OnProgress& on_progress);
Conclusion conclusion_of(const CheckedLitmusFile& file);
// Usage, where a program is refused, unless another differs.
int exit_code(const CheckedLitmusFile& file);

// As a table for a person and as JSON for a machine.
std::string litmus_table(const CheckedLitmusFile& file);
std::string litmus_json(const CheckedLitmusFile& file);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_LITMUS_H_
