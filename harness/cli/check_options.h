#ifndef HARNESS_CLI_CHECK_OPTIONS_H_
#define HARNESS_CLI_CHECK_OPTIONS_H_

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/catalogue.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/litmus/memory_model.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of `perfring check`, as given.
struct CheckOptions {
  std::string program = "ring";
  std::optional<unsigned> records;
  std::optional<unsigned> polls;
  std::vector<unsigned> lengths;
  std::string fault;
  std::string form;    // A or B; none: both
  std::string litmus;  // a file
  std::string svg;     // a file
  model::MemoryModel memory_model = model::MemoryModel::Rc11;
  bool merge = false;
  bool compare = false;
  bool list = false;
  bool fences = false;
  bool json = false;
  model::Bounds bounds;
};

CLI::App& declare_command(CLI::App& app, CheckOptions& options);

// The explorations that the options ask for.
struct CheckPlan {
  const model::Entry* entry = nullptr;
  const model::ProgramFault* fault = nullptr;
  std::optional<model::Size> size;
  std::vector<model::Form> forms;
  bool merge = false;
  bool compare = false;
  std::string svg;
  model::Bounds bounds;
};

// An error names the option and what it accepts.
std::expected<CheckPlan, std::string> plan_of(const CheckOptions& options);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_CHECK_OPTIONS_H_
