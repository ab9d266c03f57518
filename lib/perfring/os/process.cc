#include "perfring/os/process.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <expected>
#include <system_error>
#include <utility>

namespace perfring::os {
namespace {

std::unexpected<std::error_code> failed(int error) noexcept {
  return std::unexpected(std::error_code(error, std::generic_category()));
}

// Repeats a system call that a signal has interrupted.
template <class Call>
auto without_eintr(Call call) noexcept {
  while (true) {
    const auto returned = call();
    if (returned >= 0 || errno != EINTR) return returned;
  }
}

// From linux/pidfd.h, which lacks these in Debian 12.
constexpr unsigned kSignalProcessGroup = 1U << 2;  // PIDFD_SIGNAL_PROCESS_GROUP
constexpr std::uint64_t kInfoExit = 1U << 3;       // PIDFD_INFO_EXIT
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroupid;
  std::array<std::uint32_t, 11> ids;
  std::int32_t exit_code;
};

// Returns how a process ended that somebody else has reaped: the kernel keeps the status as long as
// there is a pidfd (fs/pidfs.c: pidfd_info() at v6.18).
Result<int> remembered_end(int pidfd) noexcept {
  PidfdInfo info{};
  info.mask = kInfoExit;
  const unsigned long get_info = _IOWR(0xFF, 11, PidfdInfo);
  if (pidfd < 0 || ::ioctl(pidfd, get_info, &info) != 0 || (info.mask & kInfoExit) == 0) {
    return failed(ECHILD);
  }
  return info.exit_code;
}

// Returns the status in the form of wait4(2).
int status_of(const siginfo_t& ended) noexcept {
  constexpr int kCoreDumped = 0x80;
  if (ended.si_code == CLD_EXITED) return (ended.si_status & 0xff) << 8;
  return ended.si_status | (ended.si_code == CLD_DUMPED ? kCoreDumped : 0);
}

// Sets the signals that a shell gives a program. Runs in the child: it makes system calls only.
void restore_signals() noexcept {
  constexpr int kLast = 64;  // of the kernel's signals
  for (int number = 1; number <= kLast; ++number) {
    struct sigaction action{};
    if (::sigaction(number, nullptr, &action) != 0) continue;  // reserved by libc
    const bool is_kept = number == SIGHUP || number == SIGINT || number == SIGQUIT;
    if (is_kept && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Blocks all signals, so that no handler of this program runs in its child.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

Result<void> send(int socket, int word) noexcept {
  if (without_eintr([&] { return ::send(socket, &word, sizeof word, MSG_NOSIGNAL); }) < 0) {
    return failed(errno);
  }
  return {};
}

// Returns nullopt if the other end was closed and nothing is left. recv(2) returns ECONNRESET once
// if the other end was closed with a word unread; the words that it had sent before follow
// (net/unix/af_unix.c: unix_release_sock() at v6.18).
Result<std::optional<int> > receive(int socket, int flags = 0) noexcept {
  int word = 0;
  ssize_t size = 0;
  do size = without_eintr([&] { return ::recv(socket, &word, sizeof word, flags); });
  while (size < 0 && errno == ECONNRESET);
  if (size < 0) return failed(errno);
  if (size == 0) return std::nullopt;
  return word;
}

// Lets the child at the other end continue. Returns 0 if it has become the program: execve(2) has
// closed the socket. Returns ESRCH if it had ended before.
int error_of_start(int socket) noexcept {
  int flags = 0;
  if (const auto sent = send(socket, 0); !sent) {
    if (sent.error() != std::errc::broken_pipe) return sent.error().value();
    flags = MSG_DONTWAIT;  // the child has ended, and any words that it sent are there
  }
  for (const bool begins : {true, false}) {
    const auto reply = receive(socket, flags);
    if (!reply) return reply.error().value();
    if (!*reply) return begins ? ESRCH : 0;
    if (**reply != 0) return **reply;
  }
  return 0;
}

// Runs in the child. Sends 0 right before execve(2), because the child's end closes the socket just
// like a success; then, or instead, sends an errno.
int become(char* const* words, int (*prepare)(void*), void* of, int socket) noexcept {
  constexpr int kNotRun = 127;
  restore_signals();
  int error = prepare(of);
  if (error == 0) {
    const auto go = receive(socket);
    if (go && !*go) return kNotRun;
    const auto confirmed = go ? send(socket, 0) : std::unexpected(go.error());
    if (confirmed) ::execvp(words[0], words);
    error = confirmed ? errno : confirmed.error().value();
  }
  static_cast<void>(send(socket, error));
  return kNotRun;
}

}  // namespace

Result<ProcessRef> ProcessRef::open(pid_t id) noexcept {
  if (id <= 0) return failed(ESRCH);
  ProcessRef ref;
  ref.pidfd_ = Fd{static_cast<int>(::syscall(SYS_pidfd_open, id, 0))};
  if (ref.pidfd_.get() < 0) return failed(errno);
  return ref;
}

Result<void> ProcessRef::signal(int number) const noexcept {
  if (fd() < 0) return failed(ESRCH);
  if (::syscall(SYS_pidfd_send_signal, fd(), number, nullptr, 0) != 0) return failed(errno);
  return {};
}

Result<void> ProcessRef::signal_group(int number) const noexcept {
  if (fd() < 0) return failed(ESRCH);
  if (::syscall(SYS_pidfd_send_signal, fd(), number, nullptr, kSignalProcessGroup) == 0) return {};
  return failed(errno == EINVAL ? ENOSYS : errno);
}

// kernel/fork.c: pidfd_poll() at v6.18.
bool ProcessRef::has_ended() const noexcept {
  pollfd ended{.fd = fd(), .events = POLLIN, .revents = 0};
  return fd() < 0 || without_eintr([&] { return ::poll(&ended, 1, 0); }) == 1;
}

Result<Process> Process::fork_to(int (*body)(void*), void* of) {
  const pid_t owner = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) return failed(errno);
  if (id == 0) ::_exit(body(of));
  Process child;
  child.id_ = id;
  child.owner_ = owner;
  if (auto ref = ProcessRef::open(id)) child.ref_ = *std::move(ref);
  // If SIGCHLD is ignored, the child may be gone, and another process may have its id.
  siginfo_t info{};
  if (child.wait_id(info, WNOHANG | WNOWAIT) != 0) child.ref_ = {}, child.end_ = failed(ECHILD);
  return child;
}

Result<Process> Process::adopt(pid_t id) noexcept {
  if (id <= 0) return failed(ECHILD);
  auto ref = ProcessRef::open(id);
  Process child;
  child.id_ = id;
  child.owner_ = ::getpid();
  if (ref) child.ref_ = *std::move(ref);
  siginfo_t info{};
  if (child.wait_id(info, WNOHANG | WNOWAIT) != 0) {
    child.id_ = 0;
    return failed(ECHILD);
  }
  return child;
}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(owner_, other.owner_);
  std::swap(keeps_running_, other.keeps_running_);
  std::swap(ref_, other.ref_);
  std::swap(end_, other.end_);
  return *this;
}

Process::~Process() {
  if (!is_held() || keeps_running_) return;
  // A child that this process may not signal may run forever: do not wait for it.
  if (const auto sent = signal(SIGKILL); sent || sent.error() == std::errc::no_such_process) {
    static_cast<void>(wait());
  }
}

bool Process::is_owner() const noexcept {
  return id_ > 0 && owner_ == ::getpid();
}

// Whether there is a child that this process has not reaped.
bool Process::is_held() const noexcept {
  return is_owner() && !end_;
}

Result<void> Process::signal(int number) const noexcept {
  if (!is_held()) return failed(ESRCH);
  const auto sent = ref_.signal(number);
  if (sent || (ref_.fd() >= 0 && sent.error() == std::errc::no_such_process)) return sent;
  // The child's id names no other process until the child is reaped.
  siginfo_t info{};
  if (wait_id(info, WNOHANG | WNOWAIT) != 0) return failed(ESRCH);
  if (::kill(id_, number) != 0) return failed(errno);
  return {};
}

Result<void> Process::signal_group(int number) const noexcept {
  if (!is_owner()) return failed(ESRCH);
  const auto done = ref_.signal_group(number);
  const bool is_answered = done || done.error() != std::errc::function_not_supported;
  if (ref_.fd() >= 0 && is_answered) return done;
  // The same holds for the group. (For group 1, kill(2) would signal all processes.)
  siginfo_t info{};
  if (end_ || id_ == 1 || wait_id(info, WNOHANG | WNOWAIT) != 0) return failed(ESRCH);
  if (::kill(-id_, number) != 0) return failed(errno);
  return {};
}

bool Process::has_ended() const noexcept {
  if (!is_held()) return true;
  siginfo_t info{};
  return wait_id(info, WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

Result<int> Process::wait() noexcept {
  if (id_ == 0) return failed(ESRCH);
  if (!is_owner()) return failed(ECHILD);
  return end_ ? *end_ : *reap(0);
}

std::optional<Result<int> > Process::poll() noexcept {
  return is_held() ? reap(WNOHANG) : end_;
}

// Calls waitid(2) for the child. By its pidfd, since Linux 5.4: if SIGCHLD is ignored, another
// child may have its id by now.
int Process::wait_id(siginfo_t& info, int options) const noexcept {
  const auto wait = [&](idtype_t type, int id) {
    return without_eintr(
        [&] { return ::waitid(type, static_cast<id_t>(id), &info, WEXITED | __WALL | options); });
  };
  if (ref_.fd() >= 0) {
    if (const int rc = wait(P_PIDFD, ref_.fd()); rc == 0 || errno != EINVAL) return rc;
  }
  return wait(P_PID, id_);
}

std::optional<Result<int> > Process::reap(int options) noexcept {
  siginfo_t info{};
  if (wait_id(info, options) != 0) {
    end_ = remembered_end(ref_.fd());
  } else if (info.si_pid != 0) {
    end_ = status_of(info);
  }
  return end_;
}

Result<Command> Command::fork_to(const std::vector<std::string>& words, int (*prepare)(void*),
                                 void* of) {
  if (words.empty()) return failed(ENOENT);
  std::vector<char*> arguments;
  for (const std::string& each : words) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return failed(errno);
  }
  Command command;
  command.go_ = Fd{ends[0]};
  const Fd childs{ends[1]};
  const BlockedSignals while_it_forks;
  auto forked = Process::fork([&] {
    // Close the child's copy of the parent's end, so that the child notices if the parent dies.
    ::close(ends[0]);
    return become(arguments.data(), prepare, of, ends[1]);
  });
  if (!forked) return std::unexpected(forked.error());
  command.process_ = *std::move(forked);
  return command;
}

Result<void> Command::start() noexcept {
  if (process_.id() == 0) return failed(ESRCH);
  if (!is_waiting()) return {};
  if (!process_.is_owner()) return failed(ECHILD);
  const Fd go = std::move(go_);
  const auto error = error_of_start(go.get());
  if (error == 0) return {};
  static_cast<void>(process_.signal(SIGKILL));
  static_cast<void>(process_.wait());
  return failed(error);
}

Result<std::optional<Waited> > wait_any(int options) noexcept {
  Waited any{};
  any.id = without_eintr([&] { return ::wait4(-1, &any.status, options | __WALL, &any.used); });
  if (any.id < 0) return failed(errno);
  if (any.id == 0) return std::nullopt;
  return any;
}

Result<int> wait_tracee(pid_t id) noexcept {
  if (id <= 0) return failed(ESRCH);
  int status = 0;
  if (without_eintr([&] { return ::wait4(id, &status, __WALL, nullptr); }) != id) {
    return failed(errno);
  }
  return status;
}

Result<void> signal_tracee(pid_t process, pid_t thread, int number) noexcept {
  if (process <= 0 || thread <= 0) return failed(ESRCH);
  if (::syscall(SYS_tgkill, process, thread, number) != 0) return failed(errno);
  return {};
}

}  // namespace perfring::os
