#ifndef HARNESS_MODEL_CATALOGUE_H_
#define HARNESS_MODEL_CATALOGUE_H_

// The programs to check, by name: the ring protocol word by word, the source that ships, algorithms
// whose verdicts are known. Each with its faults and its expected verdict.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/engine/program.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

// A: the ring's words are atomic, B: they are not (programs.h, model_memory.h). Kernel: A with
// smp_wmb() where the protocol has a release fence, which the kernel's memory model has not.
enum class Form : std::uint8_t { A, B, Kernel };

struct Size {
  unsigned records = 0;
  unsigned drains = 0;            // while records are written
  std::vector<unsigned> lengths;  // of the records, in turn
};

struct ProgramFault {
  std::string name;
  std::string what;
  bool fails_in_a, fails_in_b;
  bool shared = false;        // it is "ring"'s
  bool in_any_order = false;  // wrong under sequential consistency, too

  // On a machine, of Entry::machine_size: in form A, or, of LKMM, in the kernel's.
  bool fails_on(MemoryModel machine) const;
  // Whether the memory model has what it puts in place of something else.
  bool can_run_on(MemoryModel machine) const;
};

// One program to explore; some entries are several.
struct Case {
  std::string label;
  Program program;
};

struct Entry {
  std::string name;
  std::string what;
  bool fails_in_a = false, fails_in_b = false;
  bool has_forms = false;
  // The defaults; nullopt if it has no size.
  std::optional<Size> size = {}, fault_size = {};
  // On a machine, where nothing merges.
  std::optional<Size> machine_size = {};
  bool has_kernel_form = false;  // it can run under LKMM
  unsigned length_min = 0, length_max = 0;
  std::string length_unit = {};
  std::vector<ProgramFault> faults = {};
  std::function<std::vector<Case>(const Size&, Form, const std::string& fault)> cases = {};

  const ProgramFault* find_fault(const std::string& fault) const;
};

const std::vector<Entry>& catalogue();
// nullptr if no entry has that name.
const Entry* find_entry(const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_CATALOGUE_H_
