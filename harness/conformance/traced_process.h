#ifndef HARNESS_CONFORMANCE_TRACED_PROCESS_H_
#define HARNESS_CONFORMANCE_TRACED_PROCESS_H_

// A program whose system calls on perf events and BPF maps are answered by this process.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/descendants.h"
#include "harness/conformance/judge.h"
#include "perfring/os/fd.h"
#include "perfring/os/process.h"

namespace perfring::conformance {

// The answer to a notified system call.
struct CallAnswer {
  bool by_kernel = false;  // this machine's own kernel carries it out
  std::int64_t value = 0;  // what it returns otherwise: an error is a negative errno
  int fd = -1;             // returned as a copy of this descriptor, if it is not -1
  bool later = false;      // answered by TracedProcess::answer()
};

// An mmap(2) of a descriptor.
struct MapCall {
  int fd = -1;
  std::uint64_t length = 0;
  std::uint64_t protection = 0;
  std::uint64_t flags = 0;
  std::uint64_t offset = 0;
};
struct MapAnswer {
  bool is_ring = false;  // otherwise the kernel carries it out
  int error = 0;         // an errno, if it is refused
};

struct Crash {
  int signal = 0;
  bool has_address = false;
  std::uint64_t address = 0;
  std::string code{};  // the instruction: a file and the offset in it, where that is known
  std::vector<std::string> frames{};  // the functions that were called, the last first; by gdb
};

// The system calls that are notified, of x86-64 and of i386 programs.
enum class Emulated : std::uint8_t {
  None,
  PerfEventOpen,
  Bpf,
  Open,
  Openat,
  Ioctl,
  EpollCtl,
  EpollWait,
  Poll,
  Ppoll,
  PpollTime64,
  Select,
  Pselect,
  PselectTime64,
};
Emulated emulated(const seccomp_data& call);
inline bool is_poll(Emulated call) {
  return call >= Emulated::Poll && call <= Emulated::PpollTime64;
}
inline bool is_select(Emulated call) {
  return call >= Emulated::Select;
}
std::vector<sock_filter> filter_of_subjects();

// The field of this name ("State:") in /proc/THREAD/status; empty if the thread has ended.
std::string status_of(pid_t thread, std::string_view field);
// The thread's process, or 0.
pid_t process_of(pid_t thread);
// Whether the signal is neither ignored nor ends the process: it has a handler.
bool is_caught(pid_t thread, int signal);
bool is_blocked(pid_t thread, int signal);

inline constexpr int kSyscallStop = SIGTRAP | 0x80;  // of PTRACE_O_TRACESYSGOOD
inline constexpr std::uint64_t kGuard = 2U << 20;    // bytes on each side of a ring

class TracedProcess {
 public:
  // `call` answers a system call that is notified. `maps_ring` says of an mmap of a descriptor
  // whether that is a ring's: it is then mapped between guards, and `mapped` gets its place.
  // `faulted` is called for each fault, whether the program catches it or not.
  struct Handler {
    std::function<CallAnswer(const seccomp_notif&)> call;
    std::function<MapAnswer(pid_t thread, const MapCall&)> maps_ring;
    std::function<void(std::uint64_t base)> mapped;
    std::function<void(const Crash&)> faulted;
    bool is_kernels_own = false;  // the ring, whose data it protects itself
  };

  // Throws CannotRun if the program does not exist, or the system allows no listener or no tracing.
  TracedProcess(const std::vector<std::string>& command, const ProcessLimits& limits,
                Handler handler);
  ~TracedProcess();
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  // Answers the calls that are there, or waits a moment. Returns whether the process still runs.
  bool step();
  // Answers one that was left for later. Returns whether it was still waiting: a signal may have
  // ended it.
  bool answer(std::uint64_t id, const CallAnswer& answer) const;
  // Whether that call is still to be answered: a signal may have ended it.
  bool is_waiting(std::uint64_t id) const;
  // The CPU time used by it and by what it has forked, if they still run.
  std::int64_t cpu_ns() const;
  // Whether a thread of theirs is on a CPU, or waits for one.
  bool is_running() const;
  // To its process group.
  void signal(int number) const;
  pid_t id() const { return pid_; }
  // The calls in which its threads are, and those of what it has forked.
  std::vector<seccomp_data> calls() const;

  // The wait status and the CPU time that it has used, once it has ended.
  int status() const { return status_; }
  double cpu_seconds() const { return cpu_seconds_; }
  const std::optional<Crash>& fault() const { return fault_; }
  // Whether a program that it has become would run as another user, or group, if it were not
  // traced.
  bool is_set_uid() const { return is_set_uid_; }
  std::string out() const;
  std::string err() const;
  // The length of out() or err(), whichever is longer.
  std::uint64_t printed_bytes() const;

  // Read and write the memory of this thread's process. They return whether all of it is mapped.
  bool read(pid_t thread, std::uint64_t address, void* to, std::size_t size) const;
  bool write(pid_t thread, std::uint64_t address, const void* from, std::size_t size) const;
  // A copy of its descriptor, or an empty Fd.
  os::Fd copy_of(pid_t thread, int fd);

 private:
  void start(const std::vector<std::string>& command, const ProcessLimits& limits);
  void begin_tracing(int listener);
  void end();
  void ended(const os::Waited& thread);
  void kill_tracee(pid_t thread);
  const os::ProcessRef& process_ref(pid_t thread);
  void notified();
  void stopped(pid_t thread, int status);
  void traced_mmap(pid_t thread);
  static void interrupt_poll(pid_t thread);
  static std::string code_of(pid_t thread);
  // Returns whether the thread is traced no more.
  bool explain(pid_t thread, Crash& fault);

  Handler handler_;
  const Descendants descendants_;
  os::Command command_;
  pid_t pid_ = 0;  // until it has ended
  os::Fd listener_, out_, err_;
  std::set<pid_t> threads_;               // that are traced, of it and of what it has forked
  std::map<pid_t, os::ProcessRef> refs_;  // of their processes
  int status_ = 0;
  int ended_by_ = 0;  // the signal that would have ended it, had it not been explained
  double cpu_seconds_ = 0;
  std::optional<Crash> fault_;
  bool is_set_uid_ = false;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_TRACED_PROCESS_H_
