#ifndef HARNESS_RECORD_EXISTING_TASKS_H_
#define HARNESS_RECORD_EXISTING_TASKS_H_

// Synthesizes records from /proc for the tasks that exist before an event is enabled, as
// `perf record` does (tools/perf/util/synthetic-events.c at v6.18:
// perf_event__synthesize_threads(), _modules(), _kernel_mmap()).

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace perfring::record {

// Returns FORK, COMM and MMAP2 records for the tasks that already exist, as an event with these
// attributes and this id would write them; their time is 0. The kernel writes such records only for
// later changes, and without them perf shows a sample's pid in place of its program, and no
// symbols.
//
// `of`: the process; 0 for all processes; nullopt for the map of the kernel alone, which is always
// included. Omits tasks that end in the meantime or that this user may not inspect, and the
// kernel's map if its addresses are hidden.
std::string existing_tasks(const perf_event_attr& attr, std::uint64_t id, std::optional<pid_t> of);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_EXISTING_TASKS_H_
