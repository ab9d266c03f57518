#ifndef HARNESS_MODEL_CATALOGUE_H_
#define HARNESS_MODEL_CATALOGUE_H_

// What can be checked, by name: the ring protocol word by word, the source that ships, algorithms
// whose verdicts are known. Each with its mutants, and with what is expected of it.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/engine/program.h"

namespace perfring::model {

// Of the ring's words (protocol.h, model_memory.h).
enum class Form : std::uint8_t { A, B };

struct Size {
  unsigned records = 0;
  unsigned polls = 0;             // drains, while records are written
  std::vector<unsigned> lengths;  // of the records, in turn
};

struct Mutant {
  std::string name;
  std::string what;
  bool fails_in_a, fails_in_b;
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
  // Unless told otherwise; none if it has no size.
  std::optional<Size> size = {}, mutant_size = {};
  unsigned length_min = 0, length_max = 0;
  std::string length_unit = {};
  std::vector<Mutant> mutants = {};
  bool has_those_of_ring = false;  // its mutants are those of "ring", not its own
  std::function<std::vector<Case>(const Size&, Form, const std::string& mutant)> cases = {};

  const Mutant* find_mutant(const std::string& mutant) const;
};

const std::vector<Entry>& catalogue();
// Nothing, if there is none of that name.
const Entry* find_entry(const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_CATALOGUE_H_
