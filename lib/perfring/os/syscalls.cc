#include "perfring/os/syscalls.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <linux/time_types.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace perfring::os {
namespace {

std::unexpected<std::error_code> unexpected_errno() noexcept {
  return std::unexpected(std::error_code(errno, std::generic_category()));
}

Result<void> nothing_or_error(long returned) noexcept {
  if (returned < 0) return unexpected_errno();
  return {};
}

Result<Fd> fd_or_error(long returned) noexcept {
  if (returned < 0) return unexpected_errno();
  return Fd{static_cast<int>(returned)};
}

// `attr` is zeroed, its padding included: the kernel refuses unknown bytes that are not zero
// (kernel/bpf/syscall.c, CHECK_ATTR).
long bpf(bpf_cmd command, bpf_attr& attr) noexcept {
  return ::syscall(SYS_bpf, command, &attr, sizeof(attr));
}

std::uint64_t address_of(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

bpf_attr zeroed_attr() noexcept {
  bpf_attr attr;
  __builtin_memset(&attr, 0, sizeof(attr));
  return attr;
}

}  // namespace

Result<Fd> perf_event_open(perf_event_attr& attr, std::uint32_t cpu) noexcept {
  return fd_or_error(::syscall(SYS_perf_event_open, &attr, /*pid=*/-1, static_cast<int>(cpu),
                               /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC));
}

Result<void> perf_event_enable(int fd) noexcept {
  return nothing_or_error(::ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
}

Result<void> perf_event_disable(int fd) noexcept {
  return nothing_or_error(::ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
}

Result<void> perf_event_set_output(int fd, int to) noexcept {
  return nothing_or_error(::ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, to));
}

Result<void> perf_event_pause_output(int fd, bool paused) noexcept {
  return nothing_or_error(::ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, paused ? 1 : 0));
}

Result<std::uint64_t> perf_event_lost(int fd) noexcept {
  std::uint64_t value_and_lost[2];
  const ssize_t length = ::read(fd, value_and_lost, sizeof(value_and_lost));
  if (length < 0) return unexpected_errno();
  if (length == static_cast<ssize_t>(sizeof(value_and_lost))) return value_and_lost[1];
  return std::unexpected(std::make_error_code(std::errc::operation_not_supported));
}

Result<Fd> bpf_map_create(std::uint32_t type, std::uint32_t max_entries, int inner) noexcept {
  bpf_attr attr = zeroed_attr();
  attr.map_type = type;
  attr.key_size = sizeof(__u32);
  attr.value_size = sizeof(__u32);
  attr.max_entries = max_entries;
  attr.inner_map_fd = static_cast<__u32>(inner);
  return fd_or_error(bpf(BPF_MAP_CREATE, attr));
}

Result<void> bpf_map_update(int map_fd, std::uint32_t key, std::uint32_t value) noexcept {
  bpf_attr attr = zeroed_attr();
  attr.map_fd = static_cast<__u32>(map_fd);
  attr.key = address_of(&key);
  attr.value = address_of(&value);
  attr.flags = BPF_ANY;
  return nothing_or_error(bpf(BPF_MAP_UPDATE_ELEM, attr));
}

Result<void> bpf_map_delete(int map_fd, std::uint32_t key) noexcept {
  bpf_attr attr = zeroed_attr();
  attr.map_fd = static_cast<__u32>(map_fd);
  attr.key = address_of(&key);
  return nothing_or_error(bpf(BPF_MAP_DELETE_ELEM, attr));
}

Result<bpf_map_info> bpf_map_info_of(int map_fd) noexcept {
  bpf_map_info info{};
  bpf_attr attr = zeroed_attr();
  attr.info.bpf_fd = static_cast<__u32>(map_fd);
  attr.info.info_len = sizeof(info);
  attr.info.info = address_of(&info);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, attr) < 0) return unexpected_errno();
  return info;
}

Result<void> bpf_pin(int fd, const char* path) noexcept {
  bpf_attr attr = zeroed_attr();
  attr.bpf_fd = static_cast<__u32>(fd);
  attr.pathname = address_of(path);
  return nothing_or_error(bpf(BPF_OBJ_PIN, attr));
}

Result<Fd> bpf_get_pinned(const char* path) noexcept {
  bpf_attr attr = zeroed_attr();
  attr.pathname = address_of(path);
  return fd_or_error(bpf(BPF_OBJ_GET, attr));
}

Result<std::size_t> epoll_pwait2(int fd, std::span<epoll_event> events,
                                 std::uint64_t nanoseconds) noexcept {
  constexpr std::uint64_t second = 1'000'000'000;
  // The kernel's type has 64-bit seconds on every machine.
  __kernel_timespec timeout{};
  timeout.tv_sec = static_cast<decltype(timeout.tv_sec)>(nanoseconds / second);
  timeout.tv_nsec = static_cast<decltype(timeout.tv_nsec)>(nanoseconds % second);
  const long reported =
      ::syscall(SYS_epoll_pwait2, fd, events.data(), static_cast<long>(events.size()), &timeout,
                nullptr, std::size_t{0});
  if (reported < 0) return unexpected_errno();
  return static_cast<std::size_t>(reported);
}

Result<void> membarrier_global() noexcept {
  return nothing_or_error(::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
}

Result<Fd> duplicate(int fd) noexcept {
  return fd_or_error(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

std::uint64_t monotonic_ns() noexcept {
  return clock_ns(CLOCK_MONOTONIC);
}

std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::size_t page_size() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace perfring::os
