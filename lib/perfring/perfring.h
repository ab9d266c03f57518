#ifndef PERFRING_PERFRING_H_
#define PERFRING_PERFRING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// The whole of perfring: a consumer of Linux perf-event ring buffers, as BPF programs fill them
// with bpf_perf_event_output(). Its API is what these headers have in the namespace perfring;
// perfring::os and perfring::internal are not to be used.

#include "perfring/control_flow.h"      // ControlFlow<B, C>, Break, Continue
#include "perfring/os/cpus.h"           // online_cpus(): where to open buffers
#include "perfring/perf_buffer.h"       // PerfBuffer: one CPU's event, its mapping and its ring
#include "perfring/perf_event.h"        // PerfEvent = Sample | Lost | Malformed
#include "perfring/perf_event_array.h"  // PerfEventArray: the BPF map that BPF programs output to
#include "perfring/ring/cursor.h"  // Cursor<Memory>: the same, pulled: records held until released
#include "perfring/ring/ring.h"    // Ring<Memory>: the drain, over memory mapped elsewhere
#include "perfring/version.h"      // PERFRING_VERSION

#endif
#endif  // PERFRING_PERFRING_H_
