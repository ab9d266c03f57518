#ifndef HARNESS_MODEL_RING_RING_FAULTS_H_
#define HARNESS_MODEL_RING_RING_FAULTS_H_

// The source that ships with one thing wrong beside it, or different: a policy for Ring, a consumer
// around it, or a Cpu for the kernel. Those of harness/faults, and some that need this memory.

#include <span>
#include <string>
#include <string_view>

#include "harness/model/ring/ring_consumer.h"
#include "harness/model/ring/ring_program.h"

namespace perfring::model {

struct RingFault {
  std::string name;  // in the catalogue of harness/faults
  Producing kernel;
  Consumer user;
  // The check that finds it in the forms A and B, of 6 records and 3 drains; nullptr: none does.
  const char *in_a, *in_b;
  std::string_view shows_in;  // the program of the catalogue
  bool in_any_order;          // wrong under sequential consistency, too

  Program make(const RingOptions& options) const { return ring_program(options, kernel, user); }
};

std::span<const RingFault> ring_faults();
// The same beside a Cursor (ring_consumer.h), or in it: those that are a matter of order.
std::span<const RingFault> cursor_faults();
// nullptr if no fault has that name.
const RingFault* find_ring_fault(std::span<const RingFault> among, const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_RING_FAULTS_H_
