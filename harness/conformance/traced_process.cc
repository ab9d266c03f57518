#include "harness/conformance/traced_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>

#include "harness/program/console.h"

namespace perfring::conformance {
namespace {

bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE ||
         signal == SIGILL;
}

void check(long rc, const char* what) {
  if (rc < 0) throw std::system_error{errno, std::generic_category(), what};
}

// The same of a call that a container may forbid.
void check_allowed(long rc, const char* what) {
  if (rc >= 0) return;
  throw CannotRun{fmt::format(
      "this system lets no program be supervised: {}: {}: allow seccomp and ptrace (docker run "
      "--security-opt seccomp=unconfined --cap-add SYS_PTRACE), or give an --adapter, which needs "
      "neither",
      what, std::strerror(errno))};
}

os::Fd memory_file() {
  os::Fd file{::memfd_create("subject", MFD_CLOEXEC)};
  check(file.get(), "memfd_create");
  return file;
}

std::string contents(int fd) {
  std::string text;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t length = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(text.size()));
    if (length <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(length));
  }
}

// In the child, between fork() and exec(): installs the filter, sends the listener's number, waits
// until it is traced, and becomes the program. Sends a negative errno where something failed.
void become(const std::vector<char*>& words, std::vector<sock_filter>& program, int to_parent,
            int from_parent) {
  sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long listener =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &loaded);
  const int number = listener < 0 ? -errno : static_cast<int>(listener);
  if (::write(to_parent, &number, sizeof(number)) != sizeof(number) || listener < 0) return;
  char go = 0;
  if (::read(from_parent, &go, 1) != 1) return;
  ::close(number);
  ::execvp(words.front(), words.data());
  const int failed = -errno;
  static_cast<void>(!::write(to_parent, &failed, sizeof(failed)));
}

}  // namespace

TracedProcess::TracedProcess(const std::vector<std::string>& command, const ProcessLimits& limits,
                             Handler handler)
    : handler_{std::move(handler)}, out_{memory_file()}, err_{memory_file()} {
  try {
    start(command, limits);
  } catch (...) {
    end();
    throw;
  }
}

TracedProcess::~TracedProcess() {
  end();
}

// Nothing is left running: whatever it has forked is traced, in another session too.
void TracedProcess::end() {
  if (group_ <= 0) return;
  ::kill(group_, SIGKILL);
  ::kill(-group_, SIGKILL);
  for (const pid_t thread : threads_) ::kill(thread, SIGKILL);
  // Not for children that are not the subject's: a shell that became this program may have some.
  for (int status = 0;;) {
    const pid_t thread = ::waitpid(-1, &status, threads_.empty() ? __WALL | WNOHANG : __WALL);
    if (thread < 0 && errno == EINTR) continue;
    if (thread <= 0) return;
    if (WIFSTOPPED(status)) {  // forked just now
      threads_.insert(thread);
      ::kill(thread, SIGKILL);
    } else {
      threads_.erase(thread);
    }
  }
}

// By hand, not by harness/program/child_process.h: between fork() and exec() the child installs its
// filter.
void TracedProcess::start(const std::vector<std::string>& command, const ProcessLimits& limits) {
#ifndef __x86_64__
  throw CannotRun{"programs as they are can be run on x86-64 alone: give an --adapter"};
#endif
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<sock_filter> program = filter_of_subjects();
  std::array<int, 2> up{};
  std::array<int, 2> down{};
  check(::pipe2(up.data(), O_CLOEXEC), "pipe2");
  const os::Fd up_read{up[0]};
  os::Fd up_write{up[1]};
  check(::pipe2(down.data(), O_CLOEXEC), "pipe2");
  const os::Fd down_read{down[0]};
  const os::Fd down_write{down[1]};
  const os::Fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  pid_ = ::fork();
  check(pid_, "fork");
  ::setpgid(pid_, pid_);  // by parent and child: either may be the first to need it
  group_ = pid_;
  threads_.insert(pid_);
  if (pid_ == 0) {
    confine(limits);
    ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(out_.get(), STDOUT_FILENO);
    ::dup2(err_.get(), STDERR_FILENO);
    become(words, program, up[1], down[0]);
    ::_exit(127);
  }
  up_write = os::Fd{};
  int number = 0;
  if (::read(up_read.get(), &number, sizeof(number)) != sizeof(number)) number = -EPERM;
  errno = number < 0 ? -number : 0;
  check_allowed(number, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)");
  begin_tracing(number);
  check(::write(down_write.get(), "", 1), "write");
  // exec() closes the pipe.
  if (::read(up_read.get(), &number, sizeof(number)) != sizeof(number)) return;
  throw CannotRun{fmt::format("{} cannot be started: {}: give a program, or its path",
                              in_quotes(command.front()), std::strerror(-number))};
}

void TracedProcess::begin_tracing(int listener) {
  check_allowed(pidfd_of(pid_).get(), "pidfd_open");
  listener_ = copy_of(pid_, listener);
  check_allowed(listener_.get(), "pidfd_getfd");
  constexpr long kOptions = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD |
                            PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
                            PTRACE_O_TRACEVFORK;
  check_allowed(::ptrace(PTRACE_SEIZE, pid_, nullptr, kOptions), "ptrace(PTRACE_SEIZE)");
}

bool TracedProcess::step() {
  pollfd listener{listener_.get(), POLLIN, 0};
  ::poll(&listener, 1, 1);
  if ((listener.revents & POLLIN) != 0) notified();
  rusage used{};
  for (int status = 0;;) {
    const pid_t thread = ::wait4(-1, &status, WNOHANG | __WALL, &used);
    if (thread < 0 && errno == ECHILD) {  // its end was seen while an mmap was traced
      status_ = SIGKILL;
      pid_ = -1;
      return false;
    }
    if (thread <= 0) return true;
    if (WIFSTOPPED(status)) {
      stopped(thread, status);
      continue;
    }
    threads_.erase(thread);
    pidfds_.erase(thread);
    if (thread == pid_) {
      status_ = ended_by_ != 0 ? ended_by_ : status;
      cpu_seconds_ = cpu_seconds_of(used);
      pid_ = -1;
      return false;
    }
  }
}

// Threads that are not a process of their own have no such clock: the process's counts them.
std::int64_t TracedProcess::cpu_ns() const {
  std::int64_t sum = 0;
  for (const pid_t thread : threads_) {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(thread, &clock) != 0 || ::clock_gettime(clock, &time) != 0) continue;
    sum += time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  }
  return sum;
}

bool TracedProcess::is_running() const {
  return std::ranges::any_of(threads_,
                             [](pid_t thread) { return status_of(thread, "State:") == "R"; });
}

void TracedProcess::stopped(pid_t thread, int status) {
  const int number = WSTOPSIG(status);
  const int event = status >> 16;
  if (event == PTRACE_EVENT_SECCOMP) return traced_mmap(thread);
  const bool group_stop = event == PTRACE_EVENT_STOP && number != SIGTRAP;
  threads_.insert(thread);
  if (event != 0 && !group_stop) {
    unsigned long forked = 0;
    struct stat program{};
    if (event == PTRACE_EVENT_EXEC &&
        ::stat(fmt::format("/proc/{}/exe", thread).c_str(), &program) == 0) {
      is_set_uid_ = is_set_uid_ || (program.st_mode & (S_ISUID | S_ISGID)) != 0;
    }
    const bool forks =
        event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE;
    if (forks && ::ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &forked) == 0) {
      threads_.insert(static_cast<pid_t>(forked));
    }
    ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
    return;
  }
  if (is_fault(number)) {
    siginfo_t info{};
    if (::ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0) {
      const bool has_address = (number == SIGSEGV || number == SIGBUS) && info.si_code > 0;
      fault_ =
          Crash{number, has_address,
                has_address ? reinterpret_cast<std::uintptr_t>(info.si_addr) : 0, code_of(thread)};
      handler_.faulted(*fault_);
      if (explain(thread, *fault_)) return;
    }
  }
  const bool own = number == kSyscallStop || group_stop;
  if (!own && is_caught(thread, number)) interrupt_poll(thread);
  ::ptrace(PTRACE_CONT, thread, nullptr, own ? 0L : long{number});
}

void TracedProcess::signal(int number) const {
  if (pid_ > 0) ::kill(-group_, number);
}

std::string TracedProcess::out() const {
  return contents(out_.get());
}

std::string TracedProcess::err() const {
  return contents(err_.get());
}

std::uint64_t TracedProcess::printed_bytes() const {
  const auto size = [](const os::Fd& file) {
    struct stat of{};
    return ::fstat(file.get(), &of) == 0 ? of.st_size : 0;
  };
  return static_cast<std::uint64_t>(std::max(size(out_), size(err_)));
}

bool TracedProcess::read(pid_t thread, std::uint64_t address, void* to, std::size_t size) const {
  const iovec here{to, size};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), size};
  return ::process_vm_readv(thread, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

bool TracedProcess::write(pid_t thread, std::uint64_t address, const void* from,
                          std::size_t size) const {
  const iovec here{const_cast<void*>(from), size};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), size};
  return ::process_vm_writev(thread, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

os::Fd TracedProcess::copy_of(pid_t thread, int fd) {
  return os::Fd{static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd_of(thread).get(), fd, 0))};
}

// pidfd_open() takes the first thread of a process alone; its descriptors are those of all. Of
// another thread it says EINVAL, and ENOENT from Linux 6.16 on.
const os::Fd& TracedProcess::pidfd_of(pid_t thread) {
  os::Fd& pidfd = pidfds_[thread];
  if (pidfd.get() >= 0) return pidfd;
  pidfd = os::Fd{static_cast<int>(::syscall(SYS_pidfd_open, thread, 0))};
  if (pidfd.get() >= 0 || (errno != EINVAL && errno != ENOENT)) return pidfd;
  if (const pid_t process = process_of(thread); process != 0) {
    pidfd = os::Fd{static_cast<int>(::syscall(SYS_pidfd_open, process, 0))};
  }
  return pidfd;
}

}  // namespace perfring::conformance
