#ifndef PERFRING_OS_PROCESS_H_
#define PERFRING_OS_PROCESS_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Processes: fork(2), kill(2), wait4(2) and their kin are called in process.cc, and nowhere else
// (//harness:processes_test). No object here can signal a process that it does not hold: an id that
// is not positive means several processes to kill(2), and an id that was reaped may be another's.
//
// Threads: each object one at a time. Errors: an errno as an error_code of the generic category.

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

// A process that need not be a child, held by a pidfd: whoever gets its id later is never hit.
// Lifetime: moved from, or made without a process, it refers to none, and every call fails (ESRCH).
class ProcessRef {
 public:
  ProcessRef() = default;
  // pidfd_open(2). ESRCH if `id` is not positive; ENOSYS before Linux 5.3; EINVAL or ENOENT for a
  // thread that is not the first of its process.
  static Result<ProcessRef> open(pid_t id) noexcept;

  // pidfd_send_signal(2). ESRCH once the process was reaped.
  Result<void> signal(int number) const noexcept;
  // The process group of which it is, or was, the leader. ENOSYS before Linux 6.9.
  Result<void> signal_group(int number) const noexcept;
  // Whether it has ended, reaped or not. One that refers to none has.
  bool has_ended() const noexcept;
  int fd() const noexcept { return pidfd_.get(); }

 private:
  Fd pidfd_;
};

// A child of this process, which this object owns: one that still runs when it is destroyed is
// killed, and one that has ended is reaped.
//
// Lifetime: moved from, or made without a child, it owns none: id() is 0, and every other call
// fails (ESRCH). In a process that fork(2) made of its owner, the child is the owner's: nothing
// happens to it, and wait() fails (ECHILD). (The copy is told by its id, which differs unless it
// has a PID namespace of its own: a copy there is not to use or to destroy this object.)
class Process {
 public:
  // fork(2). The child ends, by _exit(2), with what `body` returns.
  template <class Body>
  static Result<Process> fork(Body body) {
    return fork_to([](void* of) -> int { return (*static_cast<Body*>(of))(); }, &body);
  }
  // A child that this process has without having forked it: it is the reaper of its descendants
  // (PR_SET_CHILD_SUBREAPER). ECHILD if it is no child.
  static Result<Process> adopt(pid_t id) noexcept;

  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // Stays as it is when the child has been reaped.
  pid_t id() const noexcept { return id_; }
  // Whether it has, or had, a child, and this process forked it.
  bool is_owner() const noexcept;

  // ESRCH once the child was reaped, by whomever.
  Result<void> signal(int number) const noexcept;
  // The process group that the child leads. Before Linux 6.9 it must not have been reaped yet
  // (ESRCH).
  Result<void> signal_group(int number) const noexcept;

  // Whether it has ended, without reaping it.
  bool has_ended() const noexcept;
  // Waits for its end and reaps it. Returns wait4(2)'s status, every time. ECHILD: it has ended,
  // and nobody can tell how, since this process ignores SIGCHLD or somebody else has reaped it (and
  // the kernel is older than 6.15, which remembers: PIDFD_INFO_EXIT).
  Result<int> wait() noexcept;
  // The same without waiting: nullopt while it runs, and without a child.
  std::optional<Result<int> > poll() noexcept;
  // wait_any() has reaped it.
  void reaped(int status) noexcept { end_ = status; }

  // It is not ended when this object is destroyed.
  void let_run_on() noexcept { runs_on_ = true; }

 private:
  static Result<Process> fork_to(int (*body)(void*), void* of);
  bool is_held() const noexcept;
  int wait_id(siginfo_t& info, int options) const noexcept;
  std::optional<Result<int> > reap(int options) noexcept;

  pid_t id_ = 0;  // a child, as long as end_ is not known; or 0
  pid_t owner_ = 0;
  bool runs_on_ = false;
  ProcessRef ref_;  // none where the kernel has no pidfd
  std::optional<Result<int> > end_;
};

// A child that waits for its start, and then becomes another program. It has the signals that a
// shell would give it, whatever this process does with its own: each at its default and none
// blocked, but SIGHUP, SIGINT and SIGQUIT stay ignored where they are (nohup, and & in a script).
class Command {
 public:
  // Forks. The child calls `prepare`, which is to do system calls only and returns 0 or an errno;
  // then it waits. words[0] is a path, or a name that is sought in PATH.
  template <class Prepare>
  static Result<Command> fork(const std::vector<std::string>& words, Prepare prepare) {
    return fork_to(words, [](void* of) -> int { return (*static_cast<Prepare*>(of))(); }, &prepare);
  }

  Command() = default;

  bool waits() const noexcept { return go_.get() >= 0; }
  // Lets it execve(2), once; later calls do nothing. Errors: those of `prepare` and of execve(2);
  // ESRCH if the child had ended before, or there is none. It has then been reaped. ECHILD in a
  // process that fork(2) made of the owner. It waits for execve(2), and, where another thread has
  // forked a process between fork() and start() or meanwhile, until that one ends or execs too.
  Result<void> start() noexcept;

  Process& process() noexcept { return process_; }
  const Process& process() const noexcept { return process_; }

 private:
  static Result<Command> fork_to(const std::vector<std::string>& words, int (*prepare)(void*),
                                 void* of);

  Process process_;
  Fd go_;  // closed without a word, it ends the child
};

// A child or a tracee that wait_any() has seen stop or end.
struct Waited {
  pid_t id;
  int status;
  rusage used;
};
// wait4(2) of any child or tracee, threads included, for a process that supervises others: nullopt
// if WNOHANG is among `options` and none has changed; ECHILD if there are none. To a Process that
// has ended it is to be told (Process::reaped()).
Result<std::optional<Waited> > wait_any(int options) noexcept;
// The same of one tracee, which is waited for. ESRCH if `id` is not positive.
Result<int> wait_tracee(pid_t id) noexcept;
// tgkill(2) of a thread that this process has stopped, and whose id nobody else can have therefore.
// ESRCH if an id is not positive.
Result<void> signal_tracee(pid_t process, pid_t thread, int number) noexcept;

}  // namespace perfring::os

#endif
#endif  // PERFRING_OS_PROCESS_H_
