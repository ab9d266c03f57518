#ifndef HARNESS_CONFORMANCE_SUPERVISOR_TRACED_PROCESS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_TRACED_PROCESS_H_

// Runs a program, and answers its system calls on perf events and BPF maps.

#include <linux/seccomp.h>
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/conformance/cases/judge.h"
#include "harness/conformance/supervisor/descendants.h"
#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/tracee.h"
#include "perfring/os/fd.h"
#include "perfring/os/process.h"

namespace perfring::conformance {

struct Crash {
  int signal = 0;
  bool has_address = false;
  std::uint64_t address = 0;
  std::string code{};                 // the instruction: a file and the offset in it, if known
  std::vector<std::string> frames{};  // the called functions, innermost first; from gdb
};

// An access of the program to a ring's control page.
struct PageAccess {
  enum class Moment : std::uint8_t { ReadDone, StoreDue, StoreDone };
  std::uint64_t base = 0;  // the ring's address in the program
  std::uint64_t offset = 0;
  Moment moment = Moment::ReadDone;
};

inline constexpr std::uint64_t kGuard = 2U << 20;  // bytes on each side of a ring

// Returns the address relative to a ring in whose memory or guards it is, "byte -8 of the ring's
// 8192", or "".
std::string place_near(std::uint64_t address, std::uint64_t base, std::uint64_t length);

class TracedProcess {
 public:
  // `call` answers a notified system call. `maps_ring` decides whether an mmap of a file is a
  // ring's. If so, the ring is mapped between guards, and `mapped` gets its address. `faulted` is
  // called for each fault, even if the program catches it.
  struct Handler {
    std::function<CallAnswer(const Tracee& caller, const seccomp_notif&)> call;
    std::function<MapAnswer(const Tracee& caller, const MapCall&)> maps_ring;
    std::function<void(std::uint64_t base)> mapped;
    std::function<void(const Crash&)> faulted;
    // If set, each access to a ring's control page stops the program for a call: after a read,
    // before and after a store. Not seen: another thread's access at the same time, and that of a
    // system call.
    std::function<void(const PageAccess&)> accessed;
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

 private:
  void start(const std::vector<std::string>& command, const ProcessLimits& limits);
  void begin_tracing(int listener);
  void end();
  void handle_end(const os::Waited& thread);
  void kill_tracee(pid_t thread);
  Tracee tracee(pid_t thread);
  std::shared_ptr<const os::ProcessRef> process_ref(pid_t thread);
  void handle_notification();
  void handle_stop(pid_t thread, int status);
  void traced_mmap(pid_t thread);
#ifdef __x86_64__
  static std::uint64_t map_between_guards(StoppedTracee& caller, const MapCall& call);
  void watch(StoppedTracee& caller, std::uint64_t base);
#endif
  // Returns false if the fault is not an access to a watched page.
  bool handle_access(pid_t thread, const siginfo_t& fault);
  // Returns true if the thread is no longer traced.
  bool explain(pid_t thread, Crash& fault);

  // A control page without any permission, and an instruction that makes a system call.
  struct WatchedPage {
    std::uint64_t base = 0;
    std::uint64_t gate = 0;
    std::uint64_t accesses = 0;
  };

  Handler handler_;
  const Descendants descendants_;
  os::Command command_;
  pid_t pid_ = 0;  // 0 once it has ended
  os::Fd listener_, out_, err_;
  std::set<pid_t> threads_;  // all that are traced: its own and its descendants'
  std::map<pid_t, std::shared_ptr<const os::ProcessRef>> refs_;  // of their processes
  int status_ = 0;
  int idle_steps_ = 0;  // since the last stop or notified call
  int ended_by_ = 0;    // the signal that would have ended it if explain() had not killed it
  double cpu_seconds_ = 0;
  std::optional<Crash> fault_;
  std::vector<WatchedPage> watched_;
  bool is_set_uid_ = false;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_TRACED_PROCESS_H_
