#ifndef HARNESS_MODEL_LITMUS_LITMUS_OPS_H_
#define HARNESS_MODEL_LITMUS_LITMUS_OPS_H_

// A thread of a litmus test: its operations, read and run.

#include <atomic>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "harness/model/engine/program.h"

namespace perfring::model {

// Each has a number, which stands for its line.
struct Op {
  std::string kind;
  std::string reg;
  Var var;
  std::uint64_t value = 0;
  bool atomic = true;
  std::memory_order order = std::memory_order_relaxed;
  Where where;  // line: its number
  std::vector<Op> body;
};

// Throws UsageError, which names the operation. Adds the register that each line assigns.
std::vector<Op> read_ops(const nlohmann::json& list, const std::map<std::string, Var>& vars,
                         std::map<std::uint32_t, std::string>& registers);

// A register that is read before it is assigned is `unset`.
void run_ops(const std::vector<Op>& ops, std::uint64_t unset);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_LITMUS_OPS_H_
