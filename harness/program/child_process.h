#ifndef HARNESS_PROGRAM_CHILD_PROCESS_H_
#define HARNESS_PROGRAM_CHILD_PROCESS_H_

// Children of this process: other programs, and copies of itself.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "perfring/os/fd.h"
#include "perfring/os/process.h"

namespace perfring {

struct ProcessResult {
  int exit_code;  // 128 + N if signal N ended the child, as in a shell
  std::string out;
  std::string err;
};

// A running program. Collects both of its outputs. Kills a program that was not waited for.
class ChildProcess {
 public:
  // `command` begins with a path: use /usr/bin/env to search PATH and to set variables, and /bin/sh
  // for everything else. The child reads `in`, or this program's stdin if `in` is empty. It calls
  // `before_exec` between fork() and exec(); this function may do system calls, but must not
  // allocate. Throws std::system_error if the child cannot be started.
  explicit ChildProcess(
      const std::vector<std::string>& command, const std::string& in = {},
      const std::function<void()>& before_exec = [] {});

  pid_t id() const { return command_.process().id(); }
  // Returns the child's stderr so far.
  std::string errors() const;

  // Like the functions of os::Process. A child that calls setsid(2) or setpgid(2) leads a group.
  void signal(int number) const { static_cast<void>(command_.process().signal(number)); }
  void signal_group(int number) const {
    static_cast<void>(command_.process().signal_group(number));
  }

  // Waits until the child has ended, and kills it once `give_up` returns true. Its group can still
  // be signaled afterwards.
  void wait_for_end(const std::function<bool()>& give_up = {}) const;
  // Does the same, and then reaps the child. Throws std::system_error if its status is not
  // available.
  ProcessResult wait(const std::function<bool()>& give_up = {});

 private:
  os::Fd in_, out_, err_;
  os::Command command_;
};

inline ProcessResult run_child(const std::vector<std::string>& command,
                               const std::string& in = {}) {
  return ChildProcess{command, in}.wait();
}

// A copy of this process that runs `body`, exits with the code that `body` returns, and runs no
// destructors. It does not outlive the thread that created it (PR_SET_PDEATHSIG), or its
// ForkedChild.
class ForkedChild {
 public:
  // Throws std::system_error if this process cannot be copied.
  explicit ForkedChild(const std::function<int()>& body);

  pid_t id() const { return process_.id(); }
  void kill() const;
  // Waits for the child's end. Returns its status, as wait4(2) does; throws std::system_error if
  // the status is not available.
  int wait();

 private:
  os::Process process_;
};

// Whether a process, which need not be a child of this one, ends within 10 s. A process that nobody
// has waited for yet counts as ended.
bool has_ended(pid_t process);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_CHILD_PROCESS_H_
