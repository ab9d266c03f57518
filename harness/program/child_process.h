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

struct Ended {
  int exit_code;  // 128 + N if signal N ended it, as in a shell
  std::string out;
  std::string err;
};

// A running program. Both its outputs are collected. One that is not waited for is killed.
class ChildProcess {
 public:
  // `command` begins with a path: /usr/bin/env searches PATH and sets variables, /bin/sh does the
  // rest. The child reads `in`, or this program's stdin if that is empty. It calls `before_exec`
  // between fork() and exec(), which may do system calls, and allocate nothing. Throws
  // std::system_error if the child cannot be started.
  explicit ChildProcess(
      const std::vector<std::string>& command, const std::string& in = {},
      const std::function<void()>& before_exec = [] {});

  pid_t id() const { return command_.process().id(); }
  // Its stderr so far.
  std::string errors() const;

  // As os::Process's. A child that calls setsid(2) or setpgid(2) leads a group.
  void signal(int number) const { static_cast<void>(command_.process().signal(number)); }
  void signal_group(int number) const {
    static_cast<void>(command_.process().signal_group(number));
  }

  // Until it has ended; kills it once `give_up` returns true. Its group can be signalled still.
  void wait_for_end(const std::function<bool()>& give_up = {}) const;
  // The same; then reaps it. Throws std::system_error if nobody can tell how it ended.
  Ended wait(const std::function<bool()>& give_up = {});

 private:
  os::Fd in_, out_, err_;
  os::Command command_;
};

inline Ended run_child(const std::vector<std::string>& command, const std::string& in = {}) {
  return ChildProcess{command, in}.wait();
}

// A copy of this process that runs `body`, ends with what that returns for its exit code, and runs
// no destructors. It does not outlive the thread that made it (PR_SET_PDEATHSIG), nor what owns it.
class ForkedChild {
 public:
  // Throws std::system_error if this process cannot be copied.
  explicit ForkedChild(const std::function<int()>& body);

  pid_t id() const { return process_.id(); }
  void kill() const;
  // Waits for its end. Returns its status, as wait4(2) does; throws std::system_error if nobody can
  // tell it.
  int wait();

 private:
  os::Process process_;
};

// Whether a process that this one need not have started ends within 10 s. One that nobody has
// waited for yet has ended.
bool has_ended(pid_t process);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_CHILD_PROCESS_H_
