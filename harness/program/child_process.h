#ifndef HARNESS_PROGRAM_CHILD_PROCESS_H_
#define HARNESS_PROGRAM_CHILD_PROCESS_H_

// Children of this process: other programs, by Boost.Process, and copies of itself.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const;
  // Its stderr so far.
  std::string errors() const;

  // Waits for its end; kills it once `give_up` returns true.
  Ended wait(const std::function<bool()>& give_up = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline Ended run_child(const std::vector<std::string>& command, const std::string& in = {}) {
  return ChildProcess{command, in}.wait();
}

// A copy of this process that runs `body`, ends with what that returns for its exit code, and runs
// no destructors. It does not outlive this process, nor what owns it.
class ForkedChild {
 public:
  // Throws std::system_error if this process cannot be copied.
  explicit ForkedChild(const std::function<int()>& body);
  ~ForkedChild();
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

  pid_t id() const { return id_; }
  void kill() const;
  // Waits for its end, once. Returns its status, as waitpid(2) does; throws std::system_error where
  // that fails.
  int wait();

 private:
  pid_t id_ = 0;
  bool is_waited_for_ = false;
};

// Whether a process that this one need not have started ends within 10 s. One that nobody has
// waited for yet has ended.
bool has_ended(pid_t process);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_CHILD_PROCESS_H_
