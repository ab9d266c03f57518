#include "harness/conformance/supervisor/traced_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "harness/program/checked.h"
#include "harness/program/console.h"
#include "harness/program/privileges.h"
#include "perfring/os/syscalls.h"

namespace perfring::conformance {
namespace {

// Like checked(), but for a call that a container may forbid.
void check_allowed(long rc, const char* what) {
  if (rc >= 0) return;
  throw CannotRun{
      fmt::format("programs cannot be supervised on this system: {}: {}: allow seccomp and ptrace "
                  "(docker run --security-opt seccomp=unconfined --cap-add SYS_PTRACE), or give an "
                  "--adapter, which needs neither",
                  what, std::strerror(errno))};
}

os::Fd memory_file() {
  return os::Fd{checked(::memfd_create("subject", MFD_CLOEXEC), "memfd_create")};
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

// Runs in the child: installs the filter, and sends its parent the listener's number, or a negative
// errno. Returns 0, or an errno.
int be_filtered(std::vector<sock_filter>& program, int to_parent) {
  sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long listener =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &loaded);
  const int number = listener < 0 ? -errno : static_cast<int>(listener);
  const bool is_sent = ::write(to_parent, &number, sizeof(number)) == sizeof(number);
  return number < 0 ? -number : is_sent ? 0 : EPIPE;
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

// Leaves nothing running: every process that the program has forked is traced, in another session
// too, or becomes a child of this process.
void TracedProcess::end() {
  if (command_.process().id() == 0) return;
  signal(SIGKILL);
  for (const pid_t thread : threads_) kill_tracee(thread);
  // Do not wait for children of others: a shell that became this program may have left some.
  while (const auto any = os::wait_any(threads_.empty() ? WNOHANG : 0).value_or(std::nullopt)) {
    if (WIFSTOPPED(any->status)) {  // forked just now
      threads_.insert(any->id);
      kill_tracee(any->id);
    } else {
      handle_end(*any);
    }
  }
  descendants_.end();
}

// Without a descriptor left for a pidfd, uses the number: it is the tracee's until it is waited
// for.
void TracedProcess::kill_tracee(pid_t thread) {
  const auto ref = process_ref(thread);
  if (ref->fd() >= 0 && ref->signal(SIGKILL)) return;
  static_cast<void>(os::signal_tracee(process_of(thread), thread, SIGKILL));
}

void TracedProcess::handle_end(const os::Waited& thread) {
  threads_.erase(thread.id);
  refs_.erase(thread.id);
  if (thread.id == command_.process().id()) command_.process().set_end(thread.status);
}

void TracedProcess::start(const std::vector<std::string>& command, const ProcessLimits& limits) {
#ifndef __x86_64__
  throw CannotRun{"unmodified programs can be run only on x86-64: give an --adapter"};
#endif
  // That filter comes before the supervisor's, which would never be notified of the call.
  check_allowed(is_perf_event_open_filtered() ? -1 : 0, "perf_event_open");
  std::vector<sock_filter> program = filter_of_subjects();
  std::array<int, 2> up{};
  checked(::pipe2(up.data(), O_CLOEXEC), "pipe2");
  const os::Fd up_read{up[0]};
  os::Fd up_write{up[1]};
  const os::Fd nothing{checked(::open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null")};
  auto forked = os::Command::fork(command, [&] {
    ::setpgid(0, 0);
    confine(limits);
    ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(out_.get(), STDOUT_FILENO);
    ::dup2(err_.get(), STDERR_FILENO);
    return be_filtered(program, up[1]);
  });
  if (!forked) throw std::system_error{forked.error(), "fork"};
  command_ = *std::move(forked);
  pid_ = command_.process().id();
  threads_.insert(pid_);
  up_write = os::Fd{};
  int number = 0;
  if (::read(up_read.get(), &number, sizeof(number)) != sizeof(number)) number = -EPERM;
  errno = number < 0 ? -number : 0;
  check_allowed(number, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)");
  begin_tracing(number);
  const auto started = command_.start();
  if (started) return;
  threads_.erase(pid_);  // start() has waited for it
  throw CannotRun{fmt::format("{} cannot be started: {}: give a program, or its path",
                              in_quotes(command.front()), started.error().message())};
}

void TracedProcess::begin_tracing(int listener) {
  check_allowed(process_ref(pid_)->fd(), "pidfd_open");
  listener_ = tracee(pid_).copy_of(listener);
  check_allowed(listener_.get(), "pidfd_getfd");
  constexpr long kOptions = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD |
                            PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
                            PTRACE_O_TRACEVFORK;
  check_allowed(::ptrace(PTRACE_SEIZE, pid_, nullptr, kOptions), "ptrace(PTRACE_SEIZE)");
}

// A stop wakes no poll, so it looks for stops often while there have been some.
bool TracedProcess::step() {
  constexpr int kIdle = 20;
  const timespec pause{.tv_sec = 0, .tv_nsec = idle_steps_ < kIdle ? 50'000 : 1'000'000};
  ++idle_steps_;
  pollfd listener{listener_.get(), POLLIN, 0};
  ::ppoll(&listener, 1, &pause, nullptr);
  if ((listener.revents & POLLIN) != 0) {
    idle_steps_ = 0;
    handle_notification();
  }
  for (;;) {
    // traced_mmap() may have reaped it.
    const bool has_ended = !threads_.contains(pid_);
    const auto any = has_ended ? os::Result<std::optional<os::Waited> >{} : os::wait_any(WNOHANG);
    if (has_ended || !any) {
      status_ = ended_by_ != 0 ? ended_by_ : command_.process().wait().value_or(SIGKILL);
      pid_ = 0;
      return false;
    }
    if (!*any) return true;
    idle_steps_ = 0;
    const auto& [thread, status, used] = **any;
    if (WIFSTOPPED(status)) {
      handle_stop(thread, status);
      continue;
    }
    handle_end(**any);
    if (thread == pid_) {
      status_ = ended_by_ != 0 ? ended_by_ : status;
      cpu_seconds_ = cpu_seconds_of(used);
      pid_ = 0;
      return false;
    }
  }
}

// A thread other than the first of its process has no such clock. The process's clock counts it.
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

void TracedProcess::handle_stop(pid_t thread, int status) {
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
      if (number == SIGSEGV && info.si_code > 0 && handle_access(thread, info)) return;
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
  static_cast<void>(command_.process().signal_group(number));
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

Tracee TracedProcess::tracee(pid_t thread) {
  return {thread, process_ref(thread)};
}

// pidfd_open() takes only the first thread of a process; all threads share its descriptors. For
// another thread it fails with EINVAL, and with ENOENT from Linux 6.16 on.
std::shared_ptr<const os::ProcessRef> TracedProcess::process_ref(pid_t thread) {
  std::shared_ptr<const os::ProcessRef>& ref = refs_[thread];
  if (ref != nullptr && ref->fd() >= 0) return ref;
  auto opened = os::ProcessRef::open(thread);
  if (!opened && (opened.error() == std::errc::invalid_argument ||
                  opened.error() == std::errc::no_such_file_or_directory)) {
    opened = os::ProcessRef::open(process_of(thread));
  }
  return ref = std::make_shared<const os::ProcessRef>(std::move(opened).value_or(os::ProcessRef{}));
}

}  // namespace perfring::conformance
