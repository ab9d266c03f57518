#ifndef HARNESS_CONFORMANCE_SUPERVISOR_CPU_LISTS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_CPU_LISTS_H_

#include <cstdint>

#include "harness/conformance/cases/cases.h"
#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/tracee.h"
#include "perfring/os/fd.h"

namespace perfring::conformance {

// The files /sys/devices/system/cpu/{online,possible,present}, which list the case's CPUs on any
// machine (P9).
class CpuLists {
 public:
  explicit CpuLists(const Case& of) : case_{of} {}

  // Answers open(2) or openat(2) of the path at this address.
  CallAnswer open(const Tracee& caller, std::uint64_t path);

 private:
  const Case& case_;
  os::Fd opened_;  // the list that was opened last
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_CPU_LISTS_H_
