// Where a traced process is: the system calls that it is in; for a fault the instruction and, if
// gdb is installed, the calls that led to it.

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/supervisor/traced_process.h"
#include "harness/program/child_process.h"
#include "harness/program/console.h"

namespace perfring::conformance {
namespace {

constexpr std::size_t kFramesMax = 12;

// Returns "drain (a.c:7)" for "#1  0x0000 in drain (page=0x1) at a.c:7", and "poll (libbpf.so.1)"
// for "in poll () from /lib/libbpf.so.1".
std::string frame_of(std::string_view line) {
  std::size_t at = line.find_first_of(' ');
  at = line.find_first_not_of(' ', std::min(at, line.size()));
  line.remove_prefix(std::min(at, line.size()));
  if (const std::size_t in = line.find(" in "); line.starts_with("0x") && in < line.size()) {
    line.remove_prefix(in + 4);
  }
  std::string frame{line.substr(0, line.find(" ("))};
  for (const std::string_view before : {" at ", " from "}) {
    const std::size_t place = line.rfind(before);
    if (place == std::string_view::npos) continue;
    const std::string_view file = line.substr(place + before.size());
    return frame + fmt::format(" ({})", file.substr(file.rfind('/') + 1));
  }
  return frame;
}

}  // namespace

std::string place_near(std::uint64_t address, std::uint64_t base, std::uint64_t length) {
  const std::uint64_t at = address - base;
  if (at + kGuard >= length + 2 * kGuard) return {};
  return fmt::format("byte {} of the ring's {}", static_cast<std::int64_t>(at), length);
}

std::vector<seccomp_data> TracedProcess::calls() const {
  std::vector<seccomp_data> all;
  for (const pid_t thread : threads_) {
    std::ifstream file{fmt::format("/proc/{}/syscall", thread)};
    seccomp_data call{};
    if (!(file >> std::dec >> call.nr)) continue;  // "running"
    for (auto& argument : call.args) file >> std::hex >> argument;
    all.push_back(call);
  }
  return all;
}

// A process has one tracer only, so the stopped thread is handed to gdb, and the process is killed
// afterwards. A thread that would survive the signal, or is not of the program that was started, is
// left alone.
bool TracedProcess::explain(pid_t thread, Crash& fault) {
  if (process_of(thread) != pid_ || is_caught(thread, fault.signal) ||
      is_ignored(thread, fault.signal) ||
      run_child({"/bin/sh", "-c", "command -v gdb"}).exit_code != 0) {
    return false;
  }
  if (::ptrace(PTRACE_DETACH, thread, nullptr, long{SIGSTOP}) != 0) return false;
  const ProcessResult gdb =
      run_child({"/usr/bin/timeout", "--signal=KILL", "20", "/usr/bin/env", "gdb", "-nx", "-batch",
                 "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-p",
                 std::to_string(thread), "-ex", fmt::format("backtrace {}", kFramesMax)},
                "\n");
  for (const auto part : std::views::split(gdb.out, '\n')) {
    const std::string_view line{part.begin(), part.end()};
    if (line.starts_with('#')) fault.frames.push_back(one_line(frame_of(line)));
  }
  ended_by_ = fault.signal;
  static_cast<void>(command_.process().signal(SIGKILL));
  return true;
}

}  // namespace perfring::conformance
