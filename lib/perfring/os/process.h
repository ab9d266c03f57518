#ifndef PERFRING_OS_PROCESS_H_
#define PERFRING_OS_PROCESS_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Processes: only process.cc calls fork(2), kill(2), wait4(2) and the like
// (//harness:processes_test). No object here can signal a process that it does not hold: to
// kill(2), an id that is not positive means several processes, and an id that was reaped may be
// another process's.
//
// Threads: one thread at a time for each object. Errors: an errno as an error_code of the generic
// category.

#include <signal.h>  // siginfo_t
#include <sys/resource.h>
#include <sys/types.h>

#include <expected>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/os/fd.h"
#include "perfring/os/syscalls.h"

namespace perfring::os {

// A process that need not be a child, held by a pidfd: a signal never hits a process that gets its
// id later.
// Lifetime: moved from, or constructed without a process, it refers to none, and every call fails
// (ESRCH).
class ProcessRef {
 public:
  ProcessRef() = default;
  // Calls pidfd_open(2). ESRCH if `id` is not positive; ENOSYS before Linux 5.3; EINVAL or ENOENT
  // for a thread that is not the first of its process.
  static Result<ProcessRef> open(pid_t id) noexcept;

  // Calls pidfd_send_signal(2). ESRCH once the process was reaped.
  Result<void> signal(int number) const noexcept;
  // Signals the process group of which the process is, or was, the leader. ENOSYS before Linux 6.9.
  Result<void> signal_group(int number) const noexcept;
  // Whether the process has ended, reaped or not. True without a process.
  bool has_ended() const noexcept;
  int fd() const noexcept { return pidfd_.get(); }

 private:
  Fd pidfd_;
};

// A child of this process, which this object owns: the destructor kills a child that still runs,
// and reaps it.
//
// Lifetime: moved from, or constructed without a child, it owns none: id() is 0, and every other
// call fails (ESRCH). In a process that the owner has forked, the child remains the owner's:
// nothing happens to it, and wait() fails (ECHILD). (The copy is recognized by its process id,
// which differs unless it has a PID namespace of its own: a copy there must not use or destroy this
// object.)
class Process {
 public:
  // Calls fork(2). The child ends, by _exit(2), with the result of `body`.
  template <class Body>
  static Result<Process> fork(Body body) {
    return fork_to([](void* of) -> int { return (*static_cast<Body*>(of))(); }, &body);
  }
  // Takes a child that this process has not forked, for the reaper of orphaned descendants
  // (PR_SET_CHILD_SUBREAPER). ECHILD if `id` is not a child.
  static Result<Process> adopt(pid_t id) noexcept;

  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // Unchanged when the child is reaped.
  pid_t id() const noexcept { return id_; }
  // Whether this object has, or had, a child, and belongs to this process.
  bool is_owner() const noexcept;

  // ESRCH once the child was reaped, by anybody.
  Result<void> signal(int number) const noexcept;
  // Signals the process group that the child leads. Before Linux 6.9 the child must not have been
  // reaped yet (ESRCH).
  Result<void> signal_group(int number) const noexcept;

  // Whether the child has ended. Does not reap it.
  bool has_ended() const noexcept;
  // Waits for the child's end and reaps it. Returns wait4(2)'s status, every time. ECHILD: the
  // child has ended, but its status is unknown, because this process ignores SIGCHLD or somebody
  // else has reaped it (and the kernel is older than 6.15, which remembers the status:
  // PIDFD_INFO_EXIT).
  Result<int> wait() noexcept;
  // Does the same without waiting: nullopt while the child runs, and without a child.
  std::optional<Result<int> > poll() noexcept;
  // Sets the child's end, for a caller that has reaped it by wait_any().
  void set_end(int status) noexcept { end_ = status; }

  // Keeps the destructor from ending the child.
  void keep_running() noexcept { keeps_running_ = true; }

 private:
  static Result<Process> fork_to(int (*body)(void*), void* of);
  bool is_held() const noexcept;
  int wait_id(siginfo_t& info, int options) const noexcept;
  std::optional<Result<int> > reap(int options) noexcept;

  pid_t id_ = 0;  // names the child as long as end_ is empty; 0 without a child
  pid_t owner_ = 0;
  bool keeps_running_ = false;
  ProcessRef ref_;  // none if the kernel has no pidfds
  std::optional<Result<int> > end_;
};

// A child that waits for its start and then becomes another program. It has the signals that a
// shell would give it, whatever this process does with its own: each at its default and none
// blocked, except that SIGHUP, SIGINT and SIGQUIT stay ignored if they are (nohup, and & in a
// script).
class Command {
 public:
  // Forks. The child calls `prepare`, which must make system calls only and returns 0 or an errno;
  // then it waits. words[0] is a path, or a name to look up in PATH.
  template <class Prepare>
  static Result<Command> fork(const std::vector<std::string>& words, Prepare prepare) {
    return fork_to(words, [](void* of) -> int { return (*static_cast<Prepare*>(of))(); }, &prepare);
  }

  Command() = default;

  bool is_waiting() const noexcept { return go_.get() >= 0; }
  // Lets the child call execve(2), once; later calls do nothing. Errors: those of `prepare` and of
  // execve(2); ESRCH if the child had ended before, or there is none. After these errors the child
  // has been reaped. ECHILD in a process that the owner has forked. start() waits for execve(2)
  // and, if another thread forks a process between fork() and the end of start(), until that
  // process ends or execs, too.
  Result<void> start() noexcept;

  Process& process() noexcept { return process_; }
  const Process& process() const noexcept { return process_; }

 private:
  static Result<Command> fork_to(const std::vector<std::string>& words, int (*prepare)(void*),
                                 void* of);

  Process process_;
  Fd go_;  // closing it without a word ends the child
};

// A child or tracee that wait_any() has found stopped or ended.
struct Waited {
  pid_t id;
  int status;
  rusage used;
};
// Calls wait4(2) for any child or tracee, threads included, in a process that supervises others.
// Returns nullopt if WNOHANG is among `options` and none has changed; ECHILD if there are none. If
// the child of a Process has ended, the caller must tell that Process (Process::set_end()).
Result<std::optional<Waited> > wait_any(int options) noexcept;
// Waits for one tracee. ESRCH if `id` is not positive.
Result<int> wait_tracee(pid_t id) noexcept;
// Calls tgkill(2) for a thread that this process has stopped, so that no other thread can have its
// id. ESRCH if an id is not positive.
Result<void> signal_tracee(pid_t process, pid_t thread, int number) noexcept;

}  // namespace perfring::os

#endif
#endif  // PERFRING_OS_PROCESS_H_
