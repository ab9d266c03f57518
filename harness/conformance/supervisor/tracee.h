#ifndef HARNESS_CONFORMANCE_SUPERVISOR_TRACEE_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_TRACEE_H_

// The threads of a traced program: their memory, descriptors and registers.

#include <linux/seccomp.h>
#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfring/os/fd.h"
#include "perfring/os/process.h"

namespace perfring::conformance {

// Whether the signal is one by which a program crashes.
bool is_fault(int signal);
// Returns the field of this name ("State:") in /proc/THREAD/status; "" if the thread has ended.
std::string status_of(pid_t thread, std::string_view field);
// Returns the thread's process, or 0.
pid_t process_of(pid_t thread);
// Whether the signal has a handler: it is neither ignored nor ends the process.
bool is_caught(pid_t thread, int signal);
bool is_ignored(pid_t thread, int signal);
bool is_blocked(pid_t thread, int signal);

// Whether both descriptors are of one file.
bool are_one_file(int a, int b);

// A thread that waits in a system call or is stopped: its process's memory and descriptors.
// A value; it is of no use once the thread has gone on.
class Tracee {
 public:
  Tracee(pid_t thread, std::shared_ptr<const os::ProcessRef> process)
      : thread_{thread}, process_{std::move(process)} {}

  pid_t thread() const { return thread_; }
  // Read and write memory. Return whether all of it is mapped.
  bool read(std::uint64_t address, void* to, std::size_t size) const;
  bool write(std::uint64_t address, const void* from, std::size_t size) const;
  // Returns a copy of the descriptor, or an empty Fd.
  os::Fd copy_of(int fd) const;

 private:
  pid_t thread_;
  std::shared_ptr<const os::ProcessRef> process_;
};

inline constexpr int kSyscallStop = SIGTRAP | 0x80;  // of PTRACE_O_TRACESYSGOOD

#ifdef __x86_64__
// How an architecture makes system calls. Each uses an instruction of two bytes.
struct Abi {
  using Register = decltype(user_regs_struct::rax) user_regs_struct::*;
  std::uint64_t mmap;
  std::uint64_t mprotect;
  std::array<Register, 6> arguments;
  std::array<unsigned char, 2> instruction;
};
// Returns that of the program that has these registers: x86-64's or i386's.
const Abi& abi_of(const user_regs_struct& registers);

// A thread that is stopped at the entry of a system call, and makes other calls in its place.
class StoppedTracee {
 public:
  explicit StoppedTracee(pid_t thread);

  bool valid() const { return valid_; }
  // Returns the status if the thread ended in one of its calls. Its id may be another thread's by
  // now.
  std::optional<int> end_status() const { return end_; }
  std::uint64_t argument(std::size_t index) const { return original_.*abi_->arguments[index]; }

  // Make a call, and return what it returns.
  std::uint64_t call_mmap(const std::array<std::uint64_t, 6>& arguments);
  std::uint64_t call_mprotect(std::uint64_t address, std::uint64_t length, int protection);
  // Writes a system call instruction to the address, whatever the page's protection.
  bool write_call_instruction(std::uint64_t address);
  // Makes the call that the thread asked for return `value`.
  void return_from_call(std::uint64_t value);

 private:
  std::uint64_t call(std::uint64_t number, const std::array<std::uint64_t, 6>& arguments);
  bool get();
  bool run();

  pid_t thread_;
  const Abi* abi_;
  std::vector<int> signals_;
  std::optional<int> end_;
  user_regs_struct original_{};
  user_regs_struct now_{};
  bool valid_ = false;
  bool has_run_one_ = false;
};

// A thread that is stopped in front of an instruction. It makes system calls by another instruction
// (`gate`), and carries out its own one.
class SteppedTracee {
 public:
  explicit SteppedTracee(pid_t thread);

  // Makes the call, and returns whether it succeeded.
  bool call_mprotect(std::uint64_t gate, std::uint64_t address, std::uint64_t length,
                     int protection);
  // Carries out the thread's instruction. Returns 0, or the signal of the fault that it ended in.
  int carry_out();
  // Sends the signals that arrived meanwhile again. To be called before the thread goes on.
  void finish();
  std::optional<int> end_status() const { return end_; }

 private:
  bool set(const user_regs_struct& registers);
  int step();

  pid_t thread_;
  std::vector<int> signals_;
  std::optional<int> end_;
  user_regs_struct own_{};
};

#endif

// Makes a thread's poll(2) or select(2) return EINTR if a signal has interrupted it. The kernel
// never restarts these calls after a signal's handler, but it would restart one that waits for its
// answer from a supervisor (signal(7)).
void interrupt_poll(pid_t thread);

// Returns the address of the thread's instruction as "FILE+OFFSET", or "".
std::string code_of(pid_t thread);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_TRACEE_H_
