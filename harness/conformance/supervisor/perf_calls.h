#ifndef HARNESS_CONFORMANCE_SUPERVISOR_PERF_CALLS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_PERF_CALLS_H_

#include <linux/seccomp.h>

#include <cstdint>
#include <string>

#include "harness/conformance/supervisor/backend.h"
#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/play_listener.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/conformance/supervisor/tracee.h"

namespace perfring::conformance {

// The calls on perf events: perf_event_open(2), ioctl(2) and, by map_ring(), mmap(2) of their
// descriptors.
class PerfCalls {
 public:
  PerfCalls(const Backend& backend, ProgramEvents& events, PlayListener& listener)
      : backend_{backend}, events_{events}, listener_{listener} {}

  CallAnswer perf_event_open(const Tracee& caller, const seccomp_data& call);
  CallAnswer ioctl(const Tracee& caller, const seccomp_data& call);
  MapAnswer map_ring(const Tracee& caller, const MapCall& call);
  // The ring that map_ring() has accepted is at this address.
  void mapped(std::uint64_t base) { mapping_->bases.push_back(base); }

 private:
  MapAnswer refuse(const MapCall& call, const std::string& why);

  const Backend& backend_;
  ProgramEvents& events_;
  PlayListener& listener_;
  ProgramEvent* mapping_ = nullptr;  // its ring is being mapped
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_PERF_CALLS_H_
