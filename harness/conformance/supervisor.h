#ifndef HARNESS_CONFORMANCE_SUPERVISOR_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_H_

// Door A: a program as it is, on a simulated kernel. Its perf and BPF calls are notified to this
// process (seccomp's user notification, P15), its rings are mapped between pages that may not be
// touched (ptrace, P18), and each of its waits is the producer's turn. No privilege is needed, and
// nothing of the program is changed. For programs of this machine's x86-64.

#include <string>
#include <vector>

#include "harness/conformance/judge.h"

namespace perfring::conformance {

struct Supervision {
  double seconds = 20;               // for the whole run
  unsigned cpu_seconds = 2;          // after which it hangs
  std::uint64_t output = 64U << 20;  // bytes, after which it floods
};

// Turns a program's output into events; an error says which line is none.
using Reader = std::expected<std::vector<Event>, std::string> (*)(const std::string& out);

// Runs the command once with the case's script. {pages} in its words is the pages of its ring.
Cell run_supervised(const std::vector<std::string>& command, const Case& of, Reader read,
                    const Supervision& limits = {});

// The lines of an adapter (README.md), but for `tail`.
std::expected<std::vector<Event>, std::string> read_lines(const std::string& out);
// bpftool -j map event_pipe id N.
std::expected<std::vector<Event>, std::string> read_bpftool(const std::string& out);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_H_
