#ifndef PERFRING_RECORD_UAPI_H_
#define PERFRING_RECORD_UAPI_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Constants of include/uapi/linux/perf_event.h for which the installed header may be too old.
// Debian 12's is from Linux 6.1. The names are the uapi's, in this project's spelling.

#include <linux/perf_event.h>

#include <cstdint>

#include "perfring/export.h"

namespace perfring::record {

// PERF_SAMPLE_BRANCH_COUNTERS, since v6.8.
inline constexpr std::uint64_t kBranchCounters = std::uint64_t{1} << 19;
// PERF_RECORD_CALLCHAIN_DEFERRED, PERF_CONTEXT_USER_DEFERRED, since v6.19.
inline constexpr std::uint32_t kCallchainDeferred = 22;
inline constexpr std::uint64_t kContextUserDeferred = ~std::uint64_t{0} - 639;  // -640
// PERF_CONTEXT_MAX: values from here on are markers.
inline constexpr std::uint64_t kContextMax = ~std::uint64_t{0} - 4094;  // -4095
// PERF_RECORD_USER_TYPE_START (tools/lib/perf/include/perf/event.h at v6.18): types from here on
// are those of perf.data files, which the kernel never writes.
inline constexpr std::uint32_t kUserTypeStart = 64;

// Returns the uapi's name of a type without PERF_RECORD_, like "MMAP2"; null for a type without
// one.
PERFRING_EXPORT const char* type_name(std::uint32_t type) noexcept;

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_UAPI_H_
