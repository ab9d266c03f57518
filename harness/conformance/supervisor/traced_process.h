#ifndef HARNESS_CONFORMANCE_SUPERVISOR_TRACED_PROCESS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_TRACED_PROCESS_H_

// Runs a program, and answers its system calls on perf events and BPF maps.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/cases/judge.h"
#include "harness/conformance/supervisor/descendants.h"
#include "perfring/os/fd.h"
#include "perfring/os/process.h"

namespace perfring::conformance {

// The answer to a notified system call.
struct CallAnswer {
  bool by_kernel = false;  // this machine's own kernel carries it out
  std::int64_t value = 0;  // else the return value; a negative errno is an error
  int fd = -1;             // if not -1, the call returns a copy of this descriptor
  bool later = false;      // TracedProcess::answer() will answer it
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
  bool is_ring = false;  // else the kernel carries it out
  int error = 0;         // an errno, if the call is refused
};

struct Crash {
  int signal = 0;
  bool has_address = false;
  std::uint64_t address = 0;
  std::string code{};                 // the instruction: a file and the offset in it, if known
  std::vector<std::string> frames{};  // the called functions, innermost first; from gdb
};

// The system calls that are notified, for x86-64 and i386 programs.
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

// Returns the field of this name ("State:") in /proc/THREAD/status; "" if the thread has ended.
std::string status_of(pid_t thread, std::string_view field);
// Returns the thread's process, or 0.
pid_t process_of(pid_t thread);
// Whether the signal has a handler: it is neither ignored nor ends the process.
bool is_caught(pid_t thread, int signal);
bool is_blocked(pid_t thread, int signal);

inline constexpr int kSyscallStop = SIGTRAP | 0x80;  // of PTRACE_O_TRACESYSGOOD
inline constexpr std::uint64_t kGuard = 2U << 20;    // bytes on each side of a ring

class TracedProcess {
 public:
  // `call` answers a notified system call. `maps_ring` decides whether an mmap of a descriptor is a
  // ring's. If so, the ring is mapped between guards, and `mapped` gets its address. `faulted` is
  // called for each fault, even if the program catches it.
  struct Handler {
    std::function<CallAnswer(const seccomp_notif&)> call;
    std::function<MapAnswer(pid_t thread, const MapCall&)> maps_ring;
    std::function<void(std::uint64_t base)> mapped;
    std::function<void(const Crash&)> faulted;
    bool is_kernel_owned = false;  // the kernel owns the ring, and protects its data itself
  };

  // Throws CannotRun if the program does not exist, or the system allows no listener or no tracing.
  TracedProcess(const std::vector<std::string>& command, const ProcessLimits& limits,
                Handler handler);
  ~TracedProcess();
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  // Answers pending calls, or waits a moment. Returns whether the process still runs.
  bool step();
  // Answers a call that was left for later. Returns false if it no longer waits: a signal may have
  // ended it.
  bool answer(std::uint64_t id, const CallAnswer& answer) const;
  // Whether that call still waits for its answer: a signal may have ended it.
  bool is_waiting(std::uint64_t id) const;
  // The CPU time of the process and its descendants, as far as they still run.
  std::int64_t cpu_ns() const;
  // Whether one of their threads is on a CPU, or waits for one.
  bool is_running() const;
  // Signals its process group.
  void signal(int number) const;
  pid_t id() const { return pid_; }
  // The system calls that the threads of the process and its descendants are in.
  std::vector<seccomp_data> calls() const;

  // The wait status and the CPU time, once the process has ended.
  int status() const { return status_; }
  double cpu_seconds() const { return cpu_seconds_; }
  const std::optional<Crash>& fault() const { return fault_; }
  // Whether a program that it executed would run as another user or group if it were not traced.
  bool is_set_uid() const { return is_set_uid_; }
  std::string out() const;
  std::string err() const;
  // The length of out() or err(), whichever is longer.
  std::uint64_t printed_bytes() const;

  // Read and write the memory of the thread's process. Return whether all of it is mapped.
  bool read(pid_t thread, std::uint64_t address, void* to, std::size_t size) const;
  bool write(pid_t thread, std::uint64_t address, const void* from, std::size_t size) const;
  // Returns a copy of the thread's descriptor, or an empty Fd.
  os::Fd copy_of(pid_t thread, int fd);

 private:
  void start(const std::vector<std::string>& command, const ProcessLimits& limits);
  void begin_tracing(int listener);
  void end();
  void handle_end(const os::Waited& thread);
  void kill_tracee(pid_t thread);
  const os::ProcessRef& process_ref(pid_t thread);
  void handle_notification();
  void handle_stop(pid_t thread, int status);
  void traced_mmap(pid_t thread);
  static void interrupt_poll(pid_t thread);
  static std::string code_of(pid_t thread);
  // Returns true if the thread is no longer traced.
  bool explain(pid_t thread, Crash& fault);

  Handler handler_;
  const Descendants descendants_;
  os::Command command_;
  pid_t pid_ = 0;  // 0 once it has ended
  os::Fd listener_, out_, err_;
  std::set<pid_t> threads_;               // all that are traced: its own and its descendants'
  std::map<pid_t, os::ProcessRef> refs_;  // of their processes
  int status_ = 0;
  int ended_by_ = 0;  // the signal that would have ended it if explain() had not killed it
  double cpu_seconds_ = 0;
  std::optional<Crash> fault_;
  bool is_set_uid_ = false;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_TRACED_PROCESS_H_
