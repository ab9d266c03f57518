#ifndef PERFRING_PERFRING_H_
#define PERFRING_PERFRING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// A consumer of the Linux perf-event ring buffers that BPF programs fill with
// bpf_perf_event_output(). The headers of merge/, wait/, snapshot/, rings/, record/, event/ and
// sampler/ are not here: include them by name. The API is the namespace perfring in these headers;
// do not use perfring::os and perfring::internal.

// IWYU pragma: begin_exports
#include "perfring/control_flow.h"      // ControlFlow<B, C>, Break, Continue
#include "perfring/os/cpus.h"           // online_cpus(): where to open buffers
#include "perfring/perf_buffer.h"       // PerfBuffer: one CPU's event, its mapping and its ring
#include "perfring/perf_event.h"        // PerfEvent = Sample | Lost | Malformed
#include "perfring/perf_event_array.h"  // PerfEventArray: the BPF map that BPF programs output to
#include "perfring/ring/cursor.h"       // Cursor<Memory>: the same ring, pulled record by record
#include "perfring/ring/ring.h"         // Ring<Memory>: the drain, over memory mapped elsewhere
#include "perfring/version.h"           // PERFRING_VERSION
// IWYU pragma: end_exports

#endif
#endif  // PERFRING_PERFRING_H_
