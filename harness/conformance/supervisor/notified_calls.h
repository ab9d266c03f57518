#ifndef HARNESS_CONFORMANCE_SUPERVISOR_NOTIFIED_CALLS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_NOTIFIED_CALLS_H_

// The system calls of a program that its supervisor is notified of, those of x86-64 and of i386
// programs alike, and their answers.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace perfring::conformance {

enum class NotifiedCall : std::uint8_t {
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
NotifiedCall notified_call(const seccomp_data& call);
inline bool is_poll(NotifiedCall call) {
  return call >= NotifiedCall::Poll && call <= NotifiedCall::PpollTime64;
}
inline bool is_select(NotifiedCall call) {
  return call >= NotifiedCall::Select;
}

// Returns the filter of a supervised program. It has the calls above notified (P15), of ioctl(2)
// only those on perf events, and stops the program for its tracer at each mmap(2) of a file (P18).
// Throws CannotRun.
std::vector<sock_filter> filter_of_subjects();

// The answer to a notified call.
struct CallAnswer {
  bool by_kernel = false;  // this machine's own kernel carries it out
  std::int64_t value = 0;  // else the return value; a negative errno is an error
  int fd = -1;             // if not -1, the call returns a copy of this descriptor
  bool later = false;      // TracedProcess::answer() will answer it
};

// An mmap(2) of a file.
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

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_NOTIFIED_CALLS_H_
