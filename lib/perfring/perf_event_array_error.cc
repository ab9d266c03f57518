#include "perfring/perf_event_array_error.h"

#include <cerrno>

namespace perfring {
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

std::string advice_on(const SyscallError& error) {
  const std::string call = call_of(error);
  const bool names_path = call == "bpf_obj_pin" || call == "bpf_obj_get";
  switch (error.io_error.value()) {
    case EBADF:
      return names_path ? "use an array that has not been moved from"
                        : "give the descriptor of an open BPF map";
    case EINVAL:
      return names_path ? "give a path on a bpffs (mount -t bpf bpf /sys/fs/bpf)"
                        : "give a BPF map";
    case EPERM:
    case EACCES:
      // Also what the kernel says of a path that is on no bpffs, and of one with a dot in its
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
      return "remove the pin that is there, or choose another path";
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

}  // namespace

std::string PerfEventArrayError::message() const {
  return std::visit([](const auto& error) { return message_of(error); }, cause);
}

std::string PerfEventArrayError::explain() const {
  return std::visit([](const auto& error) { return explain_of(error); }, cause);
}

}  // namespace perfring
