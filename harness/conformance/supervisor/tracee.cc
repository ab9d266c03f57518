#include "harness/conformance/supervisor/tracee.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "harness/conformance/supervisor/notified_calls.h"

namespace perfring::conformance {
namespace {

bool has_signal(pid_t thread, int signal, std::string_view field) {
  const std::uint64_t mask = std::strtoull(status_of(thread, field).c_str(), nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

}  // namespace

bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE ||
         signal == SIGILL;
}

std::string status_of(pid_t thread, std::string_view field) {
  std::ifstream status{fmt::format("/proc/{}/status", thread)};
  for (std::string word, value; status >> word;) {
    if (word == field && status >> value) return value;
  }
  return {};
}

pid_t process_of(pid_t thread) {
  return static_cast<pid_t>(std::strtol(status_of(thread, "Tgid:").c_str(), nullptr, 10));
}

bool is_caught(pid_t thread, int signal) {
  return has_signal(thread, signal, "SigCgt:");
}

bool is_ignored(pid_t thread, int signal) {
  return has_signal(thread, signal, "SigIgn:");
}

bool is_blocked(pid_t thread, int signal) {
  return has_signal(thread, signal, "SigBlk:");
}

bool are_one_file(int a, int b) {
  struct stat of_a{}, of_b{};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

bool Tracee::read(std::uint64_t address, void* to, std::size_t size) const {
  const iovec here{to, size};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), size};
  return ::process_vm_readv(thread_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

bool Tracee::write(std::uint64_t address, const void* from, std::size_t size) const {
  const iovec here{const_cast<void*>(from), size};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), size};
  return ::process_vm_writev(thread_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

os::Fd Tracee::copy_of(int fd) const {
  return os::Fd{static_cast<int>(::syscall(SYS_pidfd_getfd, process_->fd(), fd, 0))};
}

#ifdef __x86_64__
namespace {

constexpr std::uint64_t kCompatSegment = 0x23;  // __USER32_CS, arch/x86/include/asm/segment.h
constexpr std::uint64_t kNone = ~std::uint64_t{0};

constexpr Abi kX8664{9,
                     10,
                     {&user_regs_struct::rdi, &user_regs_struct::rsi, &user_regs_struct::rdx,
                      &user_regs_struct::r10, &user_regs_struct::r8, &user_regs_struct::r9},
                     {0x0f, 0x05}};  // syscall
constexpr Abi kI386{192,
                    125,
                    {&user_regs_struct::rbx, &user_regs_struct::rcx, &user_regs_struct::rdx,
                     &user_regs_struct::rsi, &user_regs_struct::rdi, &user_regs_struct::rbp},
                    {0xcd, 0x80}};  // int $0x80

void send_again(pid_t thread, const std::vector<int>& signals) {
  if (signals.empty()) return;
  const pid_t process = process_of(thread);
  for (const int signal : signals) static_cast<void>(os::signal_tracee(process, thread, signal));
}

}  // namespace

const Abi& abi_of(const user_regs_struct& registers) {
  return registers.cs == kCompatSegment ? kI386 : kX8664;
}

StoppedTracee::StoppedTracee(pid_t thread) : thread_{thread} {
  valid_ = get();
  original_ = now_;
  abi_ = &abi_of(original_);
}

std::uint64_t StoppedTracee::call_mmap(const std::array<std::uint64_t, 6>& arguments) {
  return call(abi_->mmap, arguments);
}

std::uint64_t StoppedTracee::call_mprotect(std::uint64_t address, std::uint64_t length,
                                           int protection) {
  return call(abi_->mprotect, {address, length, static_cast<std::uint64_t>(protection), 0, 0, 0});
}

// The stop at the call's entry, and the filter's if there is one, precede the stop at its exit.
// Rewinds to the system call instruction if an earlier call has already ended.
std::uint64_t StoppedTracee::call(std::uint64_t number,
                                  const std::array<std::uint64_t, 6>& arguments) {
  if (has_run_one_) now_.rip -= 2;
  now_.orig_rax = now_.rax = number;
  for (std::size_t i = 0; i < arguments.size(); ++i) now_.*abi_->arguments[i] = arguments[i];
  valid_ = valid_ && ::ptrace(PTRACE_SETREGS, thread_, nullptr, &now_) == 0;
  for (int stops = 0; valid_ && stops < (has_run_one_ ? 3 : 1); ++stops) {
    valid_ = run() && get();
    if (static_cast<std::int32_t>(now_.rax) != -ENOSYS) break;
  }
  has_run_one_ = true;
  return now_.rax;
}

bool StoppedTracee::write_call_instruction(std::uint64_t address) {
  long word = 0;
  std::memcpy(&word, abi_->instruction.data(), abi_->instruction.size());
  return ::ptrace(PTRACE_POKEDATA, thread_, reinterpret_cast<void*>(address), word) == 0;
}

void StoppedTracee::return_from_call(std::uint64_t value) {
  if (end_) return;
  const std::uint64_t rip = now_.rip;
  now_ = original_;
  now_.rip = rip;
  now_.rax = value;
  now_.orig_rax = kNone;  // nothing to restart
  ::ptrace(PTRACE_SETREGS, thread_, nullptr, &now_);
  send_again(thread_, signals_);
}

bool StoppedTracee::get() {
  return ::ptrace(PTRACE_GETREGS, thread_, nullptr, &now_) == 0;
}

// Runs up to the next stop at a system call. Signals that arrive meanwhile are sent again at the
// end.
bool StoppedTracee::run() {
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

SteppedTracee::SteppedTracee(pid_t thread) : thread_{thread} {
  ::ptrace(PTRACE_GETREGS, thread_, nullptr, &own_);
}

bool SteppedTracee::set(const user_regs_struct& registers) {
  return !end_ && ::ptrace(PTRACE_SETREGS, thread_, nullptr, &registers) == 0;
}

bool SteppedTracee::call_mprotect(std::uint64_t gate, std::uint64_t address, std::uint64_t length,
                                  int protection) {
  const Abi& abi = abi_of(own_);
  user_regs_struct call = own_;
  call.rip = gate;
  call.rax = abi.mprotect;
  call.orig_rax = kNone;
  call.*abi.arguments[0] = address;
  call.*abi.arguments[1] = length;
  call.*abi.arguments[2] = static_cast<std::uint64_t>(protection);
  if (!set(call) || step() != 0 || ::ptrace(PTRACE_GETREGS, thread_, nullptr, &call) != 0) {
    return false;
  }
  return set(own_) && call.rax == 0;
}

int SteppedTracee::carry_out() {
  const int fault = step();
  if (!end_) ::ptrace(PTRACE_GETREGS, thread_, nullptr, &own_);
  return fault;
}

// Signals that arrive meanwhile are sent again at the end; those of a fault are the instruction's.
int SteppedTracee::step() {
  for (;;) {
    if (::ptrace(PTRACE_SINGLESTEP, thread_, nullptr, 0L) != 0) return SIGKILL;
    const auto status = os::wait_tracee(thread_);
    if (status && !WIFSTOPPED(*status)) end_ = *status;
    if (!status || end_) return SIGKILL;
    if (*status >> 16 != 0) continue;
    const int signal = WSTOPSIG(*status);
    siginfo_t info{};
    const bool is_of_kernel =
        ::ptrace(PTRACE_GETSIGINFO, thread_, nullptr, &info) == 0 && info.si_code > 0;
    if (signal == SIGTRAP && is_of_kernel) return 0;
    if (is_fault(signal) && is_of_kernel) return signal;
    signals_.push_back(signal);
  }
}

void SteppedTracee::finish() {
  if (!end_) send_again(thread_, signals_);
}

void interrupt_poll(pid_t thread) {
  constexpr std::int32_t kRestart = -512;  // ERESTARTSYS, include/linux/errno.h
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;
  seccomp_data call{};
  call.nr = static_cast<int>(registers.orig_rax);
  call.arch = registers.cs == kCompatSegment ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64;
  const NotifiedCall which = notified_call(call);
  if (!is_poll(which) && !is_select(which)) return;
  if (static_cast<std::int32_t>(registers.rax) != kRestart) return;
  registers.rax = static_cast<std::uint64_t>(-EINTR);
  ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
}

std::string code_of(pid_t thread) {
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
void interrupt_poll(pid_t) {}

std::string code_of(pid_t) {
  return {};
}
#endif

}  // namespace perfring::conformance
