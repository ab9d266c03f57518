// The system calls of a traced process: the seccomp filter that has them notified (P15), their
// answers, and the mmap of a ring between guard pages (P18).

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "harness/conformance/supervisor/traced_process.h"
#include "perfring/os/process.h"

namespace perfring::conformance {
namespace {

constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};

// Numbers as in arch/x86/entry/syscalls/syscall_64.tbl and syscall_32.tbl at v6.18.
struct Number {
  Emulated call;
  std::uint32_t x86_64;
  std::uint32_t i386;
};
constexpr std::array kNumbers{
    Number{Emulated::PerfEventOpen, 298, 336},
    Number{Emulated::Bpf, 321, 357},
    Number{Emulated::Open, 2, 5},
    Number{Emulated::Openat, 257, 295},
    Number{Emulated::Ioctl, 16, 54},
    Number{Emulated::EpollCtl, 233, 255},
    Number{Emulated::EpollWait, 232, 256},
    Number{Emulated::EpollWait, 281, 319},  // epoll_pwait
    Number{Emulated::EpollWait, 441, 441},  // epoll_pwait2
    Number{Emulated::Poll, 7, 168},
    Number{Emulated::Ppoll, 271, 309},
    Number{Emulated::PpollTime64, kNoNumber, 414},
    Number{Emulated::Select, 23, 142},
    Number{Emulated::Pselect, 270, 308},
    Number{Emulated::PselectTime64, kNoNumber, 413},
};

constexpr sock_filter load(std::size_t at) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(at)};
}
constexpr sock_filter load_argument(std::size_t argument) {
  return load(offsetof(seccomp_data, args) + 8 * argument);  // its low word
}
// Skips `skip` instructions unless the loaded word equals `value`.
constexpr sock_filter unless(std::uint32_t value, std::size_t skip) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, static_cast<std::uint8_t>(skip), value};
}
constexpr sock_filter end(std::uint32_t action) {
  return {BPF_RET | BPF_K, 0, 0, action};
}

// Returns the filter for one architecture's calls. An mmap with a descriptor goes to the tracer.
std::vector<sock_filter> filter_of(std::uint32_t Number::* number, std::uint32_t mmap) {
  std::vector<sock_filter> program{load(offsetof(seccomp_data, nr))};
  std::uint32_t ioctl = kNoNumber;
  for (const Number& each : kNumbers) {
    if (each.call == Emulated::Ioctl) {
      ioctl = each.*number;
    } else if (each.*number != kNoNumber) {
      program.push_back(unless(each.*number, 1));
      program.push_back(end(SECCOMP_RET_USER_NOTIF));
    }
  }
  const std::vector<sock_filter> more{
      unless(ioctl, 6),
      load_argument(1),
      {BPF_ALU | BPF_RSH | BPF_K, 0, 0, _IOC_TYPESHIFT},
      {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xff},
      unless('$', 1),  // ioctls of perf events
      end(SECCOMP_RET_USER_NOTIF),
      end(SECCOMP_RET_ALLOW),
      unless(mmap, 4),
      load_argument(4),  // the descriptor
      unless(0xffff'ffff, 1),
      end(SECCOMP_RET_ALLOW),
      end(SECCOMP_RET_TRACE),
      end(SECCOMP_RET_ALLOW),
  };
  program.insert(program.end(), more.begin(), more.end());
  return program;
}

}  // namespace

Emulated emulated(const seccomp_data& call) {
  const auto number = call.arch == AUDIT_ARCH_I386 ? &Number::i386 : &Number::x86_64;
  for (const Number& each : kNumbers) {
    if (each.*number == static_cast<std::uint32_t>(call.nr)) return each.call;
  }
  return Emulated::None;
}

std::vector<sock_filter> filter_of_subjects() {
  constexpr std::uint32_t kMmap = 9;
  constexpr std::uint32_t kMmap2 = 192;
  std::vector<sock_filter> program{load(offsetof(seccomp_data, arch))};
  for (const auto& [arch, part] : {std::pair{AUDIT_ARCH_X86_64, filter_of(&Number::x86_64, kMmap)},
                                   {AUDIT_ARCH_I386, filter_of(&Number::i386, kMmap2)}}) {
    program.push_back(unless(arch, part.size()));
    program.insert(program.end(), part.begin(), part.end());
  }
  program.push_back(end(SECCOMP_RET_ALLOW));
  return program;
}

void TracedProcess::handle_notification() {
  seccomp_notif notified{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notified) != 0) return;
  const CallAnswer its = handler_.call(notified);
  if (!its.later) answer(notified.id, its);
}

bool TracedProcess::answer(std::uint64_t id, const CallAnswer& answer) const {
  if (answer.fd >= 0) {
    seccomp_notif_addfd add{};
    add.id = id;
    add.flags = SECCOMP_ADDFD_FLAG_SEND;
    add.srcfd = static_cast<std::uint32_t>(answer.fd);
    add.newfd_flags = O_CLOEXEC;
    return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0;
  }
  seccomp_notif_resp response{};
  response.id = id;
  if (answer.by_kernel) response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  if (answer.value < 0) response.error = static_cast<int>(answer.value);
  if (answer.value > 0) response.val = answer.value;
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response) == 0;
}

bool TracedProcess::is_waiting(std::uint64_t id) const {
  return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

#ifdef __x86_64__
namespace {

using Register = decltype(user_regs_struct::rax) user_regs_struct::*;

// How an architecture makes system calls. Each uses an instruction of two bytes.
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

// A thread that is stopped at the entry of a system call, and makes other calls in its place.
class Stopped {
 public:
  explicit Stopped(pid_t thread) : thread_{thread} {
    valid_ = get();
    original_ = now_;
    if (original_.cs == kCompatSegment) abi_ = kI386;
  }
  bool valid() const { return valid_; }
  // Returns the status if the thread ended in one of its calls. Its id may be another thread's by
  // now.
  std::optional<int> end_status() const { return end_; }
  const Abi& abi() const { return abi_; }
  std::uint64_t argument(std::size_t index) const { return original_.*abi_.arguments[index]; }

  // Makes a call. The stop at its entry, and the filter's if there is one, precede the stop at its
  // exit. Rewinds to the system call instruction if an earlier call has already ended.
  std::uint64_t call(std::uint64_t number, std::array<std::uint64_t, 6> arguments) {
    if (has_run_one_) now_.rip -= 2;
    now_.orig_rax = now_.rax = number;
    for (std::size_t i = 0; i < arguments.size(); ++i) now_.*abi_.arguments[i] = arguments[i];
    valid_ = valid_ && ::ptrace(PTRACE_SETREGS, thread_, nullptr, &now_) == 0;
    for (int stops = 0; valid_ && stops < (has_run_one_ ? 3 : 1); ++stops) {
      valid_ = run() && get();
      if (static_cast<std::int32_t>(now_.rax) != -ENOSYS) break;
    }
    has_run_one_ = true;
    return now_.rax;
  }
  // Makes the call that the thread asked for return `value`.
  void return_from_call(std::uint64_t value) {
    if (end_) return;
    const std::uint64_t rip = now_.rip;
    now_ = original_;
    now_.rip = rip;
    now_.rax = value;
    now_.orig_rax = kNone;  // nothing to restart
    ::ptrace(PTRACE_SETREGS, thread_, nullptr, &now_);
    const pid_t process = process_of(thread_);
    for (const int signal : signals_) {
      static_cast<void>(os::signal_tracee(process, thread_, signal));
    }
  }

 private:
  bool get() { return ::ptrace(PTRACE_GETREGS, thread_, nullptr, &now_) == 0; }
  // Runs up to the next stop at a system call. Signals that arrive meanwhile are sent again at the
  // end.
  bool run() {
    for (;;) {
      if (::ptrace(PTRACE_SYSCALL, thread_, nullptr, 0L) != 0) return false;
      const auto status = os::wait_tracee(thread_);
      if (status && !WIFSTOPPED(*status)) end_ = *status;
      if (!status || end_) return false;
      const int event = *status >> 16;
      if (WSTOPSIG(*status) == kSyscallStop || event == PTRACE_EVENT_SECCOMP) return true;
      if (event == 0) signals_.push_back(WSTOPSIG(*status));
    }
  }

  pid_t thread_;
  Abi abi_ = kX8664;
  std::vector<int> signals_;
  std::optional<int> end_;
  user_regs_struct original_{};
  user_regs_struct now_{};
  bool valid_ = false;
  bool has_run_one_ = false;
};

}  // namespace

// Three calls replace the mmap: a reservation with room for guards, the ring in its middle, and an
// mprotect that makes the data read-only, as the kernel's own is (K5).
void TracedProcess::traced_mmap(pid_t thread) {
  Stopped caller{thread};
  const MapCall map_call{static_cast<int>(caller.argument(4)), caller.argument(1),
                         caller.argument(2), caller.argument(3), caller.argument(5)};
  const std::uint64_t length = map_call.length;
  const MapAnswer answer = caller.valid() ? handler_.maps_ring(thread, map_call) : MapAnswer{};
  if (answer.error != 0) {
    caller.call(caller.abi().mprotect, {0, 0, 0, 0, 0, 0});  // has no effect, replaces the mmap
    caller.return_from_call(static_cast<std::uint64_t>(-std::int64_t{answer.error}));
  } else if (answer.is_ring) {
    const std::uint64_t reserved = caller.call(
        caller.abi().mmap,
        {0, length + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, kNone, 0});
    const std::uint64_t base = reserved + kGuard;
    const std::uint64_t mapped = caller.call(
        caller.abi().mmap, {base, length, map_call.protection, map_call.flags | MAP_FIXED,
                            caller.argument(4), map_call.offset});
    if (mapped == base) {
      if (!handler_.is_kernel_owned) {
        caller.call(caller.abi().mprotect, {base + 4096, length - 4096, PROT_READ, 0, 0, 0});
      }
      handler_.mapped(base);
    }
    caller.return_from_call(mapped);
  }
  if (const auto status = caller.end_status()) return handle_end({thread, *status, {}});
  ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
}

// The kernel never restarts poll(2) and select(2) after a signal's handler, but it would restart a
// call that waits for its answer here (signal(7)).
void TracedProcess::interrupt_poll(pid_t thread) {
  constexpr std::int32_t kRestart = -512;  // ERESTARTSYS, include/linux/errno.h
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;
  seccomp_data call{};
  call.nr = static_cast<int>(registers.orig_rax);
  call.arch = registers.cs == kCompatSegment ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64;
  const Emulated which = emulated(call);
  if (!is_poll(which) && !is_select(which)) return;
  if (static_cast<std::int32_t>(registers.rax) != kRestart) return;
  registers.rax = static_cast<std::uint64_t>(-EINTR);
  ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
}
#else
void TracedProcess::traced_mmap(pid_t thread) {
  ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
}
void TracedProcess::interrupt_poll(pid_t) {}
#endif

}  // namespace perfring::conformance
