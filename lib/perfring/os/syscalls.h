#ifndef PERFRING_OS_SYSCALLS_H_
#define PERFRING_OS_SYSCALLS_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// The system calls that perfring makes and libc does not wrap. Each returns the kernel's result, or
// its errno as an error_code of the generic category.
// Lifetime: a pointer must be valid until the call returns. Threads: any, concurrently.

#include <linux/bpf.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <system_error>

#include "perfring/os/fd.h"

struct perf_event_attr;  // linux/perf_event.h
struct epoll_event;      // sys/epoll.h

namespace perfring::os {

template <class T>
using Result = std::expected<T, std::error_code>;

// perf_event_open(2) with PERF_FLAG_FD_CLOEXEC, for every process (pid -1) on one CPU.
Result<Fd> perf_event_open(perf_event_attr& attr, std::uint32_t cpu) noexcept;
// ioctl(2) with PERF_EVENT_IOC_ENABLE, respectively PERF_EVENT_IOC_DISABLE.
Result<void> perf_event_enable(int fd) noexcept;
Result<void> perf_event_disable(int fd) noexcept;
// PERF_EVENT_IOC_SET_OUTPUT: `fd` outputs to the ring of `to`.
Result<void> perf_event_set_output(int fd, int to) noexcept;
// PERF_EVENT_IOC_PAUSE_OUTPUT: outputs to the event's ring fail while it is paused.
Result<void> perf_event_pause_output(int fd, bool paused) noexcept;
// Returns how many outputs of an event found no room: read(2) of an event with the read_format
// PERF_FORMAT_LOST (since Linux 6.0) and nothing else. EOPNOTSUPP if read_format is 0.
Result<std::uint64_t> perf_event_lost(int fd) noexcept;

// bpf(2): BPF_MAP_UPDATE_ELEM of a u32 key and a u32 value, with BPF_ANY.
Result<void> bpf_map_update(int map_fd, std::uint32_t key, std::uint32_t value) noexcept;
// bpf(2): BPF_MAP_DELETE_ELEM.
Result<void> bpf_map_delete(int map_fd, std::uint32_t key) noexcept;
// bpf(2): BPF_MAP_CREATE with keys and values of 4 bytes. `inner` is a map like the entries of a
// map of maps, and 0 for other types.
Result<Fd> bpf_map_create(std::uint32_t type, std::uint32_t max_entries, int inner) noexcept;
// bpf(2): BPF_OBJ_GET_INFO_BY_FD of a map.
Result<bpf_map_info> bpf_map_info_of(int map_fd) noexcept;
// bpf(2): BPF_OBJ_PIN and BPF_OBJ_GET. `path` is on a bpffs.
Result<void> bpf_pin(int fd, const char* path) noexcept;
Result<Fd> bpf_get_pinned(const char* path) noexcept;

// epoll_pwait2(2) without a signal mask, with a timeout in nanoseconds. Returns how many of
// `events` were reported.
Result<std::size_t> epoll_pwait2(int fd, std::span<epoll_event> events,
                                 std::uint64_t nanoseconds) noexcept;
// membarrier(2): MEMBARRIER_CMD_GLOBAL.
Result<void> membarrier_global() noexcept;

// Returns a second descriptor of the same open file, close-on-exec.
Result<Fd> duplicate(int fd) noexcept;

// CLOCK_MONOTONIC, the clock of std::chrono::steady_clock.
std::uint64_t monotonic_ns() noexcept;
// The time of another clock in nanoseconds; 0 if there is no such clock.
std::uint64_t clock_ns(clockid_t clock) noexcept;

// sysconf(_SC_PAGESIZE), in bytes.
std::size_t page_size() noexcept;

}  // namespace perfring::os

#endif
#endif  // PERFRING_OS_SYSCALLS_H_
