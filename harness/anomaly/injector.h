#ifndef HARNESS_ANOMALY_INJECTOR_H_
#define HARNESS_ANOMALY_INJECTOR_H_

// Makes one system call of a program fail: the n-th of its kind, in the program itself or in the
// processes that it forks. The kernel stops each relevant call and asks this process
// (seccomp_unotify(2)). ptrace(2) would not do, because the program may want it for itself. Two
// kinds of calls never fail: those of another program that the program executes, and those of the
// loader, which precede the mark.

#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "perfring/os/fd.h"

namespace perfring::anomaly {

enum class Action : std::uint8_t {
  Count,  // nothing fails
  // the call returns an error and does nothing, but close(2) does close, as on Linux
  Error,
  ShortOne,  // read(2), write(2): one byte is transferred
  ShortHalf,
  // the call's file, in the run's folder, is cut to half before the call
  Cut,
  Empty,
};

struct Injection {
  Action action = Action::Count;
  int call = -1;  // the number of the system call
  int error = 0;
  std::uint64_t nth = 0;
  bool marks =
      false;  // the program begins and ends with ANOMALY_MARK; else with run_program()'s first call
};

// Installs a seccomp(2) filter for this process and its descendants. It stops all calls, or only
// the calls that the injection needs. Returns the listener, or -1. Makes system calls only: it runs
// between fork() and execve().
int install_filter(const Injection& injection);

class Injector {
 public:
  // `program`: the file whose calls count. `folder`: files in it may be cut. `main`: the process.
  Injector(const Injection& injection, os::Fd listener, const struct stat& program,
           std::string folder, pid_t main);

  int fd() const noexcept { return listener_.get(); }
  // Answers one call. Returns false once no process is left that could make one.
  bool answer();

  bool was_reached() const noexcept { return reached_; }
  // How often each call was made. While something is to fail, the stopped calls only.
  const std::map<int, std::uint64_t>& counts() const noexcept { return counts_; }
  // The descriptor that a failed close(2) was to close. It is open on /dev/null now.
  std::optional<int> closed() const noexcept { return closed_; }

 private:
  bool should_count(const seccomp_notif& notification);
  bool is_of_program(pid_t task) const;
  bool matches_injection(const seccomp_notif& notification) const;
  bool fail(const seccomp_notif& notification, seccomp_notif_resp& response);
  std::string file_of(const seccomp_notif& notification) const;

  Injection injection_;
  os::Fd listener_;
  dev_t device_;
  ino_t inode_;
  std::string folder_;
  pid_t main_;
  bool has_begun_ = false;
  bool reached_ = false;
  std::uint64_t matching_ = 0;
  std::set<pid_t> forked_;  // copies of the program
  std::map<int, std::uint64_t> counts_;
  std::optional<int> closed_;
};

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_INJECTOR_H_
