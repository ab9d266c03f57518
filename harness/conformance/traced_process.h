#ifndef HARNESS_CONFORMANCE_TRACED_PROCESS_H_
#define HARNESS_CONFORMANCE_TRACED_PROCESS_H_

// A program whose system calls on perf events and BPF maps are answered by this process.

#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perfring/os/fd.h"

namespace perfring::conformance {

// How a notified system call goes on.
struct Answer {
  bool by_kernel = false;  // this machine's own kernel carries it out
  std::int64_t value = 0;  // or else it returns that: a negative errno
  int fd = -1;             // or a copy of this descriptor
  bool later = false;      // answered by answer_later()
};

struct Fault {
  int signal = 0;
  std::uint64_t address = 0;
};

class TracedProcess {
 public:
  struct Limits {
    unsigned cpu_seconds;
    std::uint64_t output;
  };
  // Calls: of a system call that is notified; of an mmap of a descriptor, whether it is a ring's
  // (length in bytes), which is then mapped between guards.
  struct Handler {
    std::function<Answer(const seccomp_notif&)> call;
    std::function<bool(pid_t thread, int fd, std::uint64_t length)> maps_ring;
    std::function<void(std::uint64_t base, std::uint64_t length)> mapped;
  };

  // Throws std::system_error where the system allows no listener, or no tracing.
  TracedProcess(const std::vector<std::string>& command, const Limits& limits, Handler handler);
  ~TracedProcess();
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  // Answers what there is, or waits a moment. False: the process has ended.
  bool step();
  void answer_later(std::uint64_t id, std::int64_t value);
  void signal(int number) const;
  pid_t id() const { return pid_; }

  // The wait status, once it has ended.
  int status() const { return status_; }
  const std::optional<Fault>& fault() const { return fault_; }
  std::string out() const;
  std::string err() const;

  // The process's memory, and a copy of one of its descriptors. False, and -1: it is not there.
  bool read(pid_t thread, std::uint64_t address, void* to, std::size_t size) const;
  bool write(pid_t thread, std::uint64_t address, const void* from, std::size_t size) const;
  os::Fd copy_of(int fd) const;

 private:
  void start(const std::vector<std::string>& command, const Limits& limits);
  void end() const;
  void notified();
  void stopped(pid_t thread, int status);
  void traced_mmap(pid_t thread);

  Handler handler_;
  pid_t pid_ = -1;  // until it has ended
  pid_t group_ = -1;
  os::Fd pidfd_, listener_, out_, err_;
  int status_ = 0;
  std::optional<Fault> fault_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_TRACED_PROCESS_H_
