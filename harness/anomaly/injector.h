#ifndef HARNESS_ANOMALY_INJECTOR_H_
#define HARNESS_ANOMALY_INJECTOR_H_

// Makes one system call of a program fail: the n-th of its kind, in the program itself or in what
// it forks. The kernel stops each call that matters and asks this process (seccomp_unotify(2)); it
// is not ptrace(2), which the program may want for itself. A program that the program executes is
// left alone, and so is the loader, which comes before the mark.

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
  Error,  // the call returns an error, and does nothing (close(2) closes all the same, as on Linux)
  ShortOne,  // read(2), write(2): one byte is read or written
  ShortHalf,
  Cut,  // the file of the call, which is one of the run's folder, is cut to half before the call
  Empty,
};

struct Injection {
  Action action = Action::Count;
  int call = -1;  // its number
  int error = 0;
  std::uint64_t nth = 0;
  bool marks =
      false;  // the program begins and ends with ANOMALY_MARK; else with run_program()'s first call
};

// Calls seccomp(2) for this process and what it starts: all calls, or those that the injection
// needs. Returns the listener, or -1. Between fork() and execve(): system calls only.
int install_filter(const Injection& injection);

class Injector {
 public:
  // `program`: the file whose calls count. `folder`: what may be cut. `main`: its process.
  Injector(const Injection& injection, os::Fd listener, const struct stat& program,
           std::string folder, pid_t main);

  int fd() const noexcept { return listener_.get(); }
  // Answers one call. Returns false once nobody is left who could ask.
  bool answer();

  bool was_reached() const noexcept { return reached_; }
  // How often each was called; while something is to fail, of that alone.
  const std::map<int, std::uint64_t>& counts() const noexcept { return counts_; }
  // The descriptor that a close(2) which failed was to close: /dev/null has its number now.
  std::optional<int> closed() const noexcept { return closed_; }

 private:
  bool counts(const seccomp_notif& asked);
  bool is_of_program(pid_t task) const;
  bool fits(const seccomp_notif& asked) const;
  bool fail(const seccomp_notif& asked, seccomp_notif_resp& response);
  std::string file_of(const seccomp_notif& asked) const;

  Injection injection_;
  os::Fd listener_;
  dev_t device_;
  ino_t inode_;
  std::string folder_;
  pid_t main_;
  bool has_begun_ = false;
  bool reached_ = false;
  std::uint64_t matching_ = 0;
  std::set<pid_t> forked_;  // known to be copies of the program
  std::map<int, std::uint64_t> counts_;
  std::optional<int> closed_;
};

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_INJECTOR_H_
