#ifndef HARNESS_MODEL_MODEL_CATALOGUE_H_
#define HARNESS_MODEL_MODEL_CATALOGUE_H_

// The programs to check, by name: the ring protocol word by word, the source that ships, and
// algorithms with known verdicts. Each has its faults and its expected verdict.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/engine/program.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

// Form A: the ring's words are atomic. Form B: they are not (programs.h, model_memory.h). Form
// Kernel: form A with smp_wmb() in place of the protocol's release fence, because the kernel's
// memory model has no release fence.
enum class Form : std::uint8_t { A, B, Kernel };

struct Size {
  unsigned records = 0;
  unsigned drains = 0;            // drains that run while records are written
  std::vector<unsigned> lengths;  // of the records, used in turn
};

struct ProgramFault {
  std::string name;
  std::string what;
  bool fails_in_a, fails_in_b;
  bool shared = false;        // also a fault of "ring"
  bool in_any_order = false;  // also fails under sequential consistency

  // Whether the fault breaks the program on this machine, at Entry::machine_size: in form A, or
  // under LKMM in form Kernel.
  bool fails_on(MemoryModel machine) const;
  // Whether the memory model supports the fence that the fault substitutes.
  bool can_run_on(MemoryModel machine) const;
};

// One program to explore. Some entries have several.
struct Case {
  std::string label;
  Program program;
};

struct Entry {
  std::string name;
  std::string what;
  bool fails_in_a = false, fails_in_b = false;
  bool has_forms = false;
  // The default sizes, without and with a fault; nullopt if the program has no size.
  std::optional<Size> size = {}, fault_size = {};
  // The size on a machine, where states are not merged.
  std::optional<Size> machine_size = {};
  bool has_kernel_form = false;  // can run under LKMM
  unsigned length_min = 0, length_max = 0;
  std::string length_unit = {};
  std::vector<ProgramFault> faults = {};
  std::function<std::vector<Case>(const Size&, Form, const std::string& fault)> cases = {};

  const ProgramFault* find_fault(const std::string& fault) const;
};

const std::vector<Entry>& catalogue();
// Returns nullptr if no entry has that name.
const Entry* find_entry(const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_MODEL_CATALOGUE_H_
