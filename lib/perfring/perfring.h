#ifndef PERFRING_PERFRING_H_
#define PERFRING_PERFRING_H_

// The whole of perfring: a consumer of Linux perf-event ring buffers, as BPF programs fill them
// with bpf_perf_event_output().

#include "perfring/control_flow.h"      // ControlFlow<B, C>, Break, Continue
#include "perfring/os/cpus.h"           // os::online_cpus(): where to open buffers
#include "perfring/perf_buffer.h"       // PerfBuffer: one CPU's event, its mapping and its ring
#include "perfring/perf_event.h"        // PerfEvent = Sample | Lost | Malformed
#include "perfring/perf_event_array.h"  // PerfEventArray: the BPF map that BPF programs output to
#include "perfring/ring/ring.h"         // Ring<Memory>: the drain, over memory mapped elsewhere
#include "perfring/version.h"           // PERFRING_VERSION

#endif  // PERFRING_PERFRING_H_
