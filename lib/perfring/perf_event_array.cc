#include "perfring/perf_event_array.h"

#include <linux/bpf.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event_array_error.h"

namespace perfring {
namespace {

std::unexpected<PerfEventArrayError> failed(const char* call, std::string object,
                                            std::error_code io_error) {
  return std::unexpected(PerfEventArrayError{SyscallError{call, std::move(object), io_error}});
}

std::string name_of(int map_fd) {
  return "map fd " + std::to_string(map_fd);
}

// The kernel's errors for descriptor -1 and for a null pointer.
std::error_code no_map() {
  return std::make_error_code(std::errc::bad_file_descriptor);
}
std::error_code no_path() {
  return std::make_error_code(std::errc::bad_address);
}

std::string name_of(const char* path) {
  return path == nullptr ? "a null pointer" : path;
}

std::string name_of_entry(std::uint32_t index) {
  return "index " + std::to_string(index);
}

// aya's names of the calls on an entry.
constexpr const char* kUpdate = "bpf_map_update_elem";
constexpr const char* kDelete = "bpf_map_delete_elem";

}  // namespace

std::expected<PerfEventArray, PerfEventArrayError> PerfEventArray::over(os::Fd map,
                                                                        std::string object) {
  const auto info = os::bpf_map_info_of(map.get());
  if (!info) return failed("bpf_obj_get_info_by_fd", std::move(object), info.error());
  if (info->type != BPF_MAP_TYPE_PERF_EVENT_ARRAY) {
    return std::unexpected(PerfEventArrayError{InvalidMapType{info->type}});
  }
  // A program answers, too, and its type may be that number. Where a map has its sizes, which are 4
  // here (kernel/bpf/arraymap.c: fd_array_map_alloc_check()), a program has a hash.
  if (info->key_size != sizeof(__u32) || info->value_size != sizeof(__u32)) {
    return failed("bpf_obj_get_info_by_fd", std::move(object),
                  std::make_error_code(std::errc::invalid_argument));
  }
  return PerfEventArray{std::move(map), info->max_entries};
}

std::expected<PerfEventArray, PerfEventArrayError> PerfEventArray::from_fd(int map_fd) {
  auto map = os::duplicate(map_fd);
  if (!map) return failed("fcntl(F_DUPFD_CLOEXEC)", name_of(map_fd), map.error());
  return over(*std::move(map), name_of(map_fd));
}

std::expected<PerfEventArray, PerfEventArrayError> PerfEventArray::from_pin(const char* path) {
  if (path == nullptr) return failed("bpf_obj_get", name_of(path), no_path());
  auto map = os::bpf_get_pinned(path);
  if (!map) return failed("bpf_obj_get", name_of(path), map.error());
  return over(*std::move(map), name_of(path));
}

std::expected<PerfEventArrayBuffer, PerfEventArrayError> PerfEventArray::open(
    std::uint32_t index, const PerfBufferOptions& options) {
  const auto not_updated = [&](std::error_code io_error) {
    return std::unexpected(PerfEventArrayError{PerfBufferError::at_failure(
        PerfBufferError::Kind::IOError, io_error, index, options.page_count)});
  };
  if (fd() < 0) return not_updated(no_map());
  auto buffer = PerfBuffer::open(index, options);
  if (!buffer) return std::unexpected(PerfEventArrayError{std::move(buffer).error()});
  const auto updated = os::bpf_map_update(fd(), index, static_cast<std::uint32_t>(buffer->fd()));
  if (!updated) return not_updated(updated.error());
  return PerfEventArrayBuffer{*std::move(buffer), map_};
}

std::expected<void, PerfEventArrayError> PerfEventArray::check_entry(const char* call,
                                                                     std::uint32_t index) const {
  if (fd() < 0) return failed(call, name_of_entry(index), no_map());
  if (index >= max_entries_) {
    return std::unexpected(PerfEventArrayError{OutOfBounds{index, max_entries_}});
  }
  return {};
}

std::expected<void, PerfEventArrayError> PerfEventArray::set(std::uint32_t index, int event_fd) {
  if (auto checked = check_entry(kUpdate, index); !checked) return checked;
  const auto updated = os::bpf_map_update(fd(), index, static_cast<std::uint32_t>(event_fd));
  if (!updated) {
    return failed(kUpdate, name_of_entry(index) + " with fd " + std::to_string(event_fd),
                  updated.error());
  }
  return {};
}

std::expected<void, PerfEventArrayError> PerfEventArray::unset(std::uint32_t index) {
  if (auto checked = check_entry(kDelete, index); !checked) return checked;
  const auto deleted = os::bpf_map_delete(fd(), index);
  if (!deleted) return failed(kDelete, name_of_entry(index), deleted.error());
  return {};
}

std::expected<void, PerfEventArrayError> PerfEventArray::pin(const char* path) const {
  if (fd() < 0) return failed("bpf_obj_pin", name_of(path), no_map());
  if (path == nullptr) return failed("bpf_obj_pin", name_of(path), no_path());
  const auto pinned = os::bpf_pin(fd(), path);
  if (!pinned) return failed("bpf_obj_pin", name_of(path), pinned.error());
  return {};
}

namespace {

using internal::call_of;

// One overload for each cause.
std::string message_of(const PerfBufferError& error) {
  return error.message();
}
std::string message_of(const InvalidMapType& error) {
  return "invalid map type " + std::to_string(error.map_type);
}
std::string message_of(const SyscallError& error) {
  return std::string{"`"} + call_of(error) + "` failed: " + error.io_error.message();
}
std::string message_of(const OutOfBounds& error) {
  return "the index is " + std::to_string(error.index) + " but `max_entries` is " +
         std::to_string(error.max_entries);
}

// The advice for kUpdate and kDelete.
std::string advice_on_entry(const std::string& call, int error) {
  switch (error) {
    case EBADF:
      return std::string{call == kUpdate ? "give the descriptor of an open perf event, and " : ""} +
             "use an array that has not been moved from";
    case EOPNOTSUPP:
      return "open the event without attr.inherit: the kernel refuses such an event as an entry";
    case ENOENT:
      return "nothing: the entry is empty already";
    case EPERM:
    case EACCES:
      return "run with CAP_BPF (before Linux 5.8: CAP_SYS_ADMIN), and give a map that is neither "
             "read-only nor frozen";
    default:
      return "see bpf(2) for this error";
  }
}

std::string advice_on(const SyscallError& error) {
  const std::string call = call_of(error);
  if (call == kUpdate || call == kDelete) return advice_on_entry(call, error.io_error.value());
  const bool names_path = call == "bpf_obj_pin" || call == "bpf_obj_get";
  switch (error.io_error.value()) {
    case EBADF:
      return names_path ? "use an array that has not been moved from"
                        : "give the descriptor of an open BPF map";
    case EFAULT:
      return names_path ? "give a path instead of a null pointer" : "see bpf(2) for this error";
    case EBADFD:
      return "open the map without O_PATH";
    case EINVAL:
      return names_path ? "give a path on a bpffs (mount -t bpf bpf /sys/fs/bpf)"
                        : "give a BPF map";
    case EPERM:
    case EACCES:
      // The kernel also returns these for a path that is on no bpffs, and for one with a dot in its
      // name (kernel/bpf/inode.c: bpf_obj_do_pin(), bpf_obj_do_get(), bpf_lookup() at v6.18).
      if (names_path) {
        return "give a path on a bpffs (mount -t bpf bpf /sys/fs/bpf) without a dot in its name, "
               "and run with CAP_BPF (before Linux 5.8: CAP_SYS_ADMIN) and access to the folder";
      }
      return call.starts_with("bpf")
                 ? "run with CAP_BPF (before Linux 5.8: CAP_SYS_ADMIN)"
                 : "change the seccomp or LSM policy that forbids it: the kernel itself does not";
    case ENOENT:
      return "give a path that exists: the folder when pinning, the pin when opening one";
    case EEXIST:
      return "remove the existing pin, or choose another path";
    case EMFILE:
      return "raise the limit on open files (ulimit -n): each array keeps one open";
    case ENFILE:
      return "raise the machine's limit on open files (sysctl fs.file-max)";
    case ENOSYS:
      return "use Linux 4.4 or later, built with CONFIG_BPF_SYSCALL";
    default:
      return "see bpf(2) for this error";
  }
}

std::string explain_of(const PerfBufferError& error) {
  return error.explain();
}
std::string explain_of(const InvalidMapType& error) {
  return "asked for: a PerfEventArray over a map\nthe system said: the map is of type " +
         std::to_string(error.map_type) +
         " (enum bpf_map_type)\nto change: give a map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY (4)";
}
std::string explain_of(const SyscallError& error) {
  return internal::explain(error, advice_on(error));
}
std::string explain_of(const OutOfBounds& error) {
  return "asked for: entry " + std::to_string(error.index) + " of a map with " +
         std::to_string(error.max_entries) +
         "\nthe system said: nothing: perfring checks this before any system call"
         "\nto change: use an index below the map's max_entries, or give the map an entry for each "
         "possible CPU";
}

}  // namespace

std::string PerfEventArrayError::message() const {
  return std::visit([](const auto& error) { return message_of(error); }, cause);
}

std::string PerfEventArrayError::explain() const {
  return std::visit([](const auto& error) { return explain_of(error); }, cause);
}

}  // namespace perfring
