#ifndef HARNESS_CONFORMANCE_SUPERVISOR_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_H_

// Door A: a program as it is, on a simulated kernel. Its perf and BPF calls are notified to this
// process (seccomp's user notification, P15), its rings are mapped between pages that may not be
// touched (ptrace, P18), and each of its waits is the producer's turn. No privilege is needed, and
// nothing of the program is changed. For x86-64 programs, and i386 ones on an x86-64 machine.

#include <string>
#include <vector>

#include "harness/conformance/judge.h"

namespace perfring::conformance {

// Turns a program's output into events. An error quotes the first line that is not one.
using Reader = std::expected<std::vector<Event>, std::string> (*)(const std::string& out);

// Runs the command once with the case's script. {pages} in its words is replaced by the pages of
// the case's ring. Throws CannotRun.
Cell run_supervised(const std::vector<std::string>& command, const Case& of, Reader read,
                    const Limits& limits = {});

// The lines that an adapter prints (README.md); `tail` may be left out.
std::expected<std::vector<Event>, std::string> read_lines(const std::string& out);
// bpftool -j map event_pipe id N.
std::expected<std::vector<Event>, std::string> read_bpftool(const std::string& out);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_H_
