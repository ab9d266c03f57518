#ifndef HARNESS_MODEL_REFERENCE_PATH_H_
#define HARNESS_MODEL_REFERENCE_PATH_H_

// The paths of one thread of a litmus test, taken alone: one for each series of values that its
// reads may return.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/litmus/text.h"

namespace perfring::model::reference {

// An update is a read and a write, one right after the other.
struct PathEvent {
  enum class Kind : std::uint8_t { Read, Write, Fence };

  Kind kind = Kind::Fence;
  Op::Order order = Op::Order::Relaxed;
  std::uint16_t location = 0;
  std::uint64_t value = 0;  // read or written
  bool update = false;      // a write: the event before it is its update's read
};

struct Path {
  std::vector<PathEvent> events;
  // From a read to a write of its thread, by their places among `events`.
  std::vector<std::pair<std::size_t, std::size_t>> data;
  std::vector<std::pair<std::size_t, std::size_t>> control;
  std::map<std::string, std::uint64_t> registers;
  bool blocked = false;  // an assumption does not hold
};

// For each location the values that its reads may return.
using Values = std::vector<std::set<std::uint64_t>>;

std::vector<Path> paths_of(const std::vector<Op>& thread, std::uint64_t unset,
                           const Values& values);

// The values that can be stored to each location in any execution of the test.
Values values_of(const LitmusText& text);

}  // namespace perfring::model::reference

#endif  // HARNESS_MODEL_REFERENCE_PATH_H_
