#ifndef HARNESS_CONFORMANCE_SUPERVISOR_PROGRAM_CALLS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_PROGRAM_CALLS_H_

#include <linux/seccomp.h>

#include "harness/conformance/supervisor/backend.h"
#include "harness/conformance/supervisor/cpu_lists.h"
#include "harness/conformance/supervisor/map_calls.h"
#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/perf_calls.h"
#include "harness/conformance/supervisor/play_listener.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/conformance/supervisor/tracee.h"
#include "harness/conformance/supervisor/wait_calls.h"

namespace perfring::conformance {

// All calls of a program that its supervisor is notified of. Each is answered by the class that has
// its name; the kernel carries out what is not about a perf event.
struct ProgramCalls {
  ProgramCalls(const Backend& backend, PlayListener& listener, TracedProcess& process)
      : events{backend},
        perf{backend, events, listener},
        map{backend, events, listener},
        wait{backend, events, listener, process},
        cpu_lists{listener.played_case()} {}

  CallAnswer answer(const Tracee& caller, const seccomp_notif& call);

  ProgramEvents events;
  PerfCalls perf;
  MapCalls map;
  WaitCalls wait;
  CpuLists cpu_lists;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_PROGRAM_CALLS_H_
