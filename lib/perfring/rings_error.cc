#include "perfring/rings_error.h"

#include <cerrno>
#include <string_view>

namespace perfring {
namespace {

using internal::call_of;

// One overload for each cause.
std::string message_of(const PerfBufferError& error) {
  return error.message();
}
std::string message_of(const os::OnlineCpusError& error) {
  return error.message();
}
std::string message_of(const SyscallError& error) {
  return std::string{"`"} + call_of(error) + "` of " + error.object +
         " failed: " + error.io_error.message();
}

std::string advice_on(const SyscallError& error) {
  const std::string call = call_of(error);
  switch (error.io_error.value()) {
    case EEXIST:
      return "add each ring once: this one has been added already";
    case EBADF:
      return "give an open descriptor, and use an object that has not been moved from";
    case EBUSY:
      return "wait until the callback has returned";
    case EMFILE:
      return "raise the limit on open files (ulimit -n): each ring keeps one or two open";
    case ENFILE:
      return "raise the machine's limit on open files (sysctl fs.file-max)";
    case ENOSPC:
      return "raise the limit on epoll watches (sysctl fs.epoll.max_user_watches)";
    case EPERM:
    case EACCES:
      if (call.starts_with("epoll"))
        return "give a descriptor that can be polled, such as an event's";
      return "run with CAP_BPF and CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN)";
    case EINVAL:
      if (call == "membarrier") {
        return "run with CAP_BPF, so that a map can be updated instead: with nohz_full there is no "
               "MEMBARRIER_CMD_GLOBAL";
      }
      break;
    default:
      break;
  }
  if (error.call == nullptr) return "see errno(3) for this error";
  return std::string{"see "} + call.substr(0, call.find('(')) + "(2) for this error";
}

std::string explain_of(const PerfBufferError& error) {
  return error.explain();
}
std::string explain_of(const os::OnlineCpusError& error) {
  return error.explain();
}
std::string explain_of(const SyscallError& error) {
  return internal::explain(error, advice_on(error));
}

}  // namespace

std::string RingsError::message() const {
  return std::visit([](const auto& error) { return message_of(error); }, cause);
}

std::string RingsError::explain() const {
  return std::visit([](const auto& error) { return explain_of(error); }, cause);
}

std::error_code RingsError::io_error() const {
  return std::visit([](const auto& error) { return error.io_error; }, cause);
}

}  // namespace perfring
