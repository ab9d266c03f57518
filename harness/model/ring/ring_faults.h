#ifndef HARNESS_MODEL_RING_RING_FAULTS_H_
#define HARNESS_MODEL_RING_RING_FAULTS_H_

// The source that ships with one thing wrong beside it, or different: a policy for Ring, a consumer
// around it, or a Cpu for the kernel. Those of harness/faults that are a matter of order, and some
// that need this memory.

#include <span>
#include <string>
#include <string_view>

#include "harness/model/ring/ring_consumer.h"

namespace perfring::model {

struct RingFault {
  std::string name;  // in the catalogue of harness/faults
  Program (*make)(const RingOptions&);
  bool fails_in_a, fails_in_b;         // of 6 records and 3 drains
  std::string_view shows_in = "ring";  // the program of the catalogue
};

std::span<const RingFault> ring_faults();
// The same beside a Cursor (cursor_consumer.h), or in it.
std::span<const RingFault> cursor_faults();
// nullptr if no fault has that name.
const RingFault* find_ring_fault(std::span<const RingFault> among, const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_RING_FAULTS_H_
