#ifndef HARNESS_CONFORMANCE_SUPERVISOR_MAP_CALLS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_MAP_CALLS_H_

#include <linux/bpf.h>
#include <linux/seccomp.h>

#include <cstdint>

#include "harness/conformance/supervisor/backend.h"
#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/play_listener.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/conformance/supervisor/tracee.h"

namespace perfring::conformance {

// The calls on the map in which a program enters its events, by bpf(2). It has one such map.
class MapCalls {
 public:
  MapCalls(const Backend& backend, ProgramEvents& events, PlayListener& listener)
      : backend_{backend}, events_{events}, listener_{listener} {}

  CallAnswer bpf(const Tracee& caller, const seccomp_data& call);

 private:
  CallAnswer update(const Tracee& caller, const bpf_attr& attr);
  CallAnswer info(const Tracee& caller, const seccomp_data& call);
  bool is_map(const Tracee& caller, std::uint32_t fd) const {
    return backend_.is_map(caller.copy_of(static_cast<int>(fd)));
  }

  const Backend& backend_;
  ProgramEvents& events_;
  PlayListener& listener_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_MAP_CALLS_H_
