// A traced process's registers: the mmap of a ring, with pages around it that may not be touched
// (P18), and the place of a fault.

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "harness/conformance/traced_process.h"

namespace perfring::conformance {

#ifdef __x86_64__
namespace {

using Register = decltype(user_regs_struct::rax) user_regs_struct::*;

// How a program's architecture makes system calls; each by an instruction of two bytes.
struct Abi {
  std::uint64_t mmap;
  std::uint64_t mprotect;
  std::array<Register, 6> arguments;
};
constexpr Abi kX8664{9,
                     10,
                     {&user_regs_struct::rdi, &user_regs_struct::rsi, &user_regs_struct::rdx,
                      &user_regs_struct::r10, &user_regs_struct::r8, &user_regs_struct::r9}};
constexpr Abi kI386{192,
                    125,
                    {&user_regs_struct::rbx, &user_regs_struct::rcx, &user_regs_struct::rdx,
                     &user_regs_struct::rsi, &user_regs_struct::rdi, &user_regs_struct::rbp}};
constexpr std::uint64_t kCompatSegment = 0x23;  // __USER32_CS, arch/x86/include/asm/segment.h
constexpr std::uint64_t kNone = ~std::uint64_t{0};

// A thread that is stopped at the entry of a system call, and is to make others in its place.
class Stopped {
 public:
  explicit Stopped(pid_t thread) : thread_{thread} {
    valid_ = get();
    asked_ = now_;
    if (asked_.cs == kCompatSegment) abi_ = kI386;
  }
  bool valid() const { return valid_; }
  const Abi& abi() const { return abi_; }
  std::uint64_t asked(std::size_t argument) const { return asked_.*abi_.arguments[argument]; }

  // Makes a call. Its entry, and the filter's stop if there is one, come before its exit. Where the
  // last one has ended already, the instruction is carried out once more.
  std::uint64_t call(std::uint64_t number, std::array<std::uint64_t, 6> arguments) {
    if (made_one_) now_.rip -= 2;
    now_.orig_rax = now_.rax = number;
    for (std::size_t i = 0; i < arguments.size(); ++i) now_.*abi_.arguments[i] = arguments[i];
    valid_ = valid_ && ::ptrace(PTRACE_SETREGS, thread_, nullptr, &now_) == 0;
    for (int stops = 0; valid_ && stops < (made_one_ ? 3 : 1); ++stops) {
      valid_ = run() && get();
      if (static_cast<std::int32_t>(now_.rax) != -ENOSYS) break;
    }
    made_one_ = true;
    return now_.rax;
  }
  // Has the call that it asked for return this.
  void return_from_call(std::uint64_t value) {
    const std::uint64_t rip = now_.rip;
    now_ = asked_;
    now_.rip = rip;
    now_.rax = value;
    now_.orig_rax = kNone;  // nothing to restart
    ::ptrace(PTRACE_SETREGS, thread_, nullptr, &now_);
  }

 private:
  bool get() { return ::ptrace(PTRACE_GETREGS, thread_, nullptr, &now_) == 0; }
  // Up to the next stop.
  bool run() const {
    int status = 0;
    return ::ptrace(PTRACE_SYSCALL, thread_, nullptr, 0L) == 0 &&
           ::waitpid(thread_, &status, __WALL) == thread_ && WIFSTOPPED(status);
  }

  pid_t thread_;
  Abi abi_ = kX8664;
  user_regs_struct asked_{};
  user_regs_struct now_{};
  bool valid_ = false;
  bool made_one_ = false;
};

}  // namespace

// Three calls take its place: a reservation with room for guards, the ring in its middle, and its
// data made read-only (K5).
void TracedProcess::traced_mmap(pid_t thread) {
  constexpr std::size_t kLength = 1;
  constexpr std::size_t kDescriptor = 4;
  Stopped caller{thread};
  const std::uint64_t length = caller.asked(kLength);
  if (caller.valid() &&
      handler_.maps_ring(thread, static_cast<int>(caller.asked(kDescriptor)), length)) {
    const std::uint64_t reserved = caller.call(
        caller.abi().mmap,
        {0, length + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, kNone, 0});
    const std::uint64_t base = reserved + kGuard;
    const std::uint64_t mapped =
        caller.call(caller.abi().mmap, {base, length, caller.asked(2), caller.asked(3) | MAP_FIXED,
                                        caller.asked(kDescriptor), caller.asked(5)});
    if (mapped == base) {
      caller.call(caller.abi().mprotect, {base + 4096, length - 4096, PROT_READ, 0, 0, 0});
      handler_.mapped(base);
    }
    caller.return_from_call(mapped);
  }
  ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
}

std::string TracedProcess::code_of(pid_t thread) {
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return {};
  std::ifstream maps{fmt::format("/proc/{}/maps", thread)};
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    unsigned long long offset = 0;
    std::array<char, 256> path{};
    const int fields = std::sscanf(line.c_str(), "%llx-%llx %*s %llx %*s %*s %255s", &begin, &end,
                                   &offset, path.data());
    if (fields != 4 || registers.rip < begin || registers.rip >= end) continue;
    const std::string_view file{path.data()};
    return fmt::format("{}+{:#x}", file.substr(file.rfind('/') + 1),
                       registers.rip - begin + offset);
  }
  return {};
}
#else
void TracedProcess::traced_mmap(pid_t thread) {
  ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
}
std::string TracedProcess::code_of(pid_t) {
  return {};
}
#endif

}  // namespace perfring::conformance
