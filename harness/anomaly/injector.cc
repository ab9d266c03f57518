#include "harness/anomaly/injector.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "harness/anomaly/mark.h"
#include "harness/program/read_file.h"
#include "perfring/os/process.h"

namespace perfring::anomaly {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // the filter allows every call
#endif

constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
constexpr sock_filter answer_with(std::uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}

std::string link_of(pid_t task, const std::string& name) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(task) + "/" + name, ignored);
}

// Returns the task's process (Tgid in its status), or 0 if the status has none.
pid_t process_of(pid_t task) {
  std::ifstream status{"/proc/" + std::to_string(task) + "/status"};
  for (std::string word; status >> word;) {
    pid_t process = 0;
    if (word == "Tgid:" && status >> process) return process;
  }
  return 0;
}

// Returns true if the task was forked and has not executed another program since
// (include/linux/sched.h: PF_FORKNOEXEC at v6.18).
bool is_copy(pid_t task) {
  constexpr unsigned long kForkNoExec = 0x40;
  // An empty text, if the task has ended.
  const std::string text =
      read_file("/proc/" + std::to_string(task) + "/stat").value_or(std::string{});
  const std::size_t name = text.rfind(')');
  if (name == text.npos) return false;
  // The fields after the name: state, parent, group, session, terminal, its group, flags.
  std::array<char, 2> state{};
  long parent = 0, group = 0, session = 0, terminal = 0, foreground = 0;
  unsigned long flags = 0;
  const int found =
      std::sscanf(text.c_str() + name + 1, " %1s %ld %ld %ld %ld %ld %lu", state.data(), &parent,
                  &group, &session, &terminal, &foreground, &flags);
  return found == 7 && (flags & kForkNoExec) != 0;
}

// Returns the end of the task's heap (brk(2)), in whole pages.
std::uint64_t heap_end(pid_t task) {
  std::ifstream maps{"/proc/" + std::to_string(task) + "/maps"};
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with("[heap]")) continue;
    return std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
  }
  return 0;
}

int argument(const seccomp_notif& notification, std::size_t number) {
  return static_cast<int>(notification.data.args[number]);
}

// Makes the transfer for the program, on the program's own open file and with fewer bytes.
ssize_t transfer(const seccomp_notif& notification, std::size_t size) {
  const auto& words = notification.data.args;
  const auto task = static_cast<pid_t>(notification.pid);
  const auto process = os::ProcessRef::open(process_of(task));
  if (!process) return -1;
  const os::Fd file{
      static_cast<int>(::syscall(SYS_pidfd_getfd, process->fd(), argument(notification, 0), 0))};
  std::vector<std::byte> bytes(size);
  const iovec here{bytes.data(), size};
  const iovec there{reinterpret_cast<void*>(words[1]), size};
  const auto offset = static_cast<off_t>(words[3]);
  const bool has_offset =
      notification.data.nr == SYS_pread64 || notification.data.nr == SYS_pwrite64;
  if (notification.data.nr == SYS_write || notification.data.nr == SYS_pwrite64) {
    if (::process_vm_readv(task, &here, 1, &there, 1, 0) < 0) return -1;
    return has_offset ? ::pwrite(file.get(), bytes.data(), size, offset)
                      : ::write(file.get(), bytes.data(), size);
  }
  const ssize_t done = has_offset ? ::pread(file.get(), bytes.data(), size, offset)
                                  : ::read(file.get(), bytes.data(), size);
  if (done > 0 && ::process_vm_writev(task, &here, 1, &there, 1, 0) < 0) return -1;
  return done;
}

// Answers from another thread: a transfer that blocks, such as a read of a pipe, must not delay the
// other calls.
void answer_later(int listener, const seccomp_notif& notification, std::size_t size) {
  std::thread{[listener = os::Fd{::fcntl(listener, F_DUPFD_CLOEXEC, 0)}, notification, size] {
    seccomp_notif_resp response{};
    response.id = notification.id;
    const ssize_t done = transfer(notification, size);
    response.val = done;
    response.error = done < 0 ? -errno : 0;
    static_cast<void>(::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &response));
  }}.detach();
}

}  // namespace

int install_filter(const Injection& injection) {
  const bool all = injection.action == Action::Count;
  // A cut happens before any call on the file.
  const bool files = injection.action == Action::Cut || injection.action == Action::Empty;
  std::array<sock_filter, 24> program{};
  std::size_t length = 0;
  const auto add = [&](const sock_filter& each) { program[length++] = each; };
  const auto stop = [&](long number) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    add(answer_with(SECCOMP_RET_USER_NOTIF));
  };
  add(load(offsetof(seccomp_data, arch)));
  add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  add(answer_with(SECCOMP_RET_ALLOW));
  add(load(offsetof(seccomp_data, nr)));
  if (!all) {
    for (const long each : {SYS_execve, SYS_prctl, SYS_fcntl}) stop(each);
    if (injection.call >= 0) stop(injection.call);
    if (files) {
      for (const long each : {SYS_read, SYS_pread64, SYS_mmap, SYS_lseek, SYS_close}) stop(each);
    }
  }
  add(answer_with(all ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW));
  const sock_fprog filter{.len = static_cast<unsigned short>(length), .filter = program.data()};
  const auto install = [&](unsigned long flags) {
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter));
  };
  // Before Linux 5.19 a signal may interrupt a call that is being answered.
  const int listener =
      install(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
  return listener >= 0 || errno != EINVAL ? listener : install(SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

Injector::Injector(const Injection& injection, os::Fd listener, const struct stat& program,
                   std::string folder, pid_t main)
    : injection_{injection},
      listener_{std::move(listener)},
      device_{program.st_dev},
      inode_{program.st_ino},
      folder_{std::move(folder)},
      main_{main} {}

bool Injector::is_of_program(pid_t task) const {
  struct stat status{};
  const std::string path = "/proc/" + std::to_string(task) + "/exe";
  return ::stat(path.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// Returns true if the call counts: the program or a copy of it makes the call, after the mark.
bool Injector::should_count(const seccomp_notif& notification) {
  const auto task = static_cast<pid_t>(notification.pid);
  if (task == main_) {
    const bool begins =
        injection_.marks
            ? notification.data.nr == SYS_prctl && argument(notification, 0) == ANOMALY_MARK
            : !has_begun_ && notification.data.nr == SYS_fcntl && argument(notification, 0) == 0 &&
                  argument(notification, 1) == F_GETFD && is_of_program(task);
    if (begins) has_begun_ = !injection_.marks || notification.data.args[1] != 0;
    return has_begun_ && !begins;
  }
  if (!has_begun_) return false;
  if (!forked_.contains(task)) {
    if (!is_copy(task) || !is_of_program(task)) return false;
    forked_.insert(task);
  }
  if (notification.data.nr == SYS_execve)
    forked_.erase(task);  // else the new program's calls count
  return true;
}

std::string Injector::file_of(const seccomp_notif& notification) const {
  const int fd = argument(notification, notification.data.nr == SYS_mmap ? 4 : 0);
  return fd < 0 ? "" : link_of(static_cast<pid_t>(notification.pid), "fd/" + std::to_string(fd));
}

// Returns true if the injection applies to this call.
bool Injector::matches_injection(const seccomp_notif& notification) const {
  switch (injection_.action) {
    case Action::Count:
      return false;
    case Action::Error:
      return notification.data.nr == injection_.call;
    case Action::ShortOne:
    case Action::ShortHalf:
      // Only files, pipes and terminals transfer in part. An event or an eventfd transfers all or
      // nothing.
      return notification.data.nr == injection_.call && notification.data.args[2] > 1 &&
             !file_of(notification).starts_with("anon_inode:");
    case Action::Cut:
    case Action::Empty: {
      const std::string file = file_of(notification);
      const bool is_call = notification.data.nr != SYS_fcntl && notification.data.nr != SYS_prctl &&
                           notification.data.nr != SYS_execve;
      return is_call && file.starts_with(folder_ + "/") && std::filesystem::is_regular_file(file);
    }
  }
  return false;
}

// Returns whether the response can be sent now.
bool Injector::fail(const seccomp_notif& notification, seccomp_notif_resp& response) {
  switch (injection_.action) {
    case Action::ShortOne:
    case Action::ShortHalf:
      answer_later(listener_.get(), notification,
                   injection_.action == Action::ShortOne ? 1 : notification.data.args[2] / 2);
      return false;
    case Action::Cut:
    case Action::Empty: {
      const std::string file = file_of(notification);
      std::error_code ignored;
      const auto size = std::filesystem::file_size(file, ignored);
      std::filesystem::resize_file(file, injection_.action == Action::Cut ? size / 2 : 0, ignored);
      return true;
    }
    default:
      break;
  }
  if (notification.data.nr == SYS_close) {
    // Linux closes the descriptor, whatever close(2) returns.
    const os::Fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    seccomp_notif_addfd put{};
    put.id = notification.id;
    put.flags = SECCOMP_ADDFD_FLAG_SETFD;
    put.srcfd = static_cast<std::uint32_t>(nothing.get());
    put.newfd = static_cast<std::uint32_t>(argument(notification, 0));
    put.newfd_flags = O_CLOEXEC;
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &put) >= 0)
      closed_ = argument(notification, 0);
  }
  response.flags = 0;
  response.error = -injection_.error;
  if (notification.data.nr == SYS_brk) {
    // brk(2) returns no error, but the unchanged end of the heap.
    response.error = 0;
    response.val = static_cast<std::int64_t>(heap_end(static_cast<pid_t>(notification.pid)));
  }
  return true;
}

bool Injector::answer() {
  seccomp_notif notification{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0)
    return errno == ENOENT || errno == EINTR;
  seccomp_notif_resp response{};
  response.id = notification.id;
  response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  if (should_count(notification)) {
    ++counts_[notification.data.nr];
    if (!reached_ && matches_injection(notification) && ++matching_ == injection_.nth) {
      reached_ = true;
      if (!fail(notification, response)) return true;
    }
  }
  // ENOENT: the task no longer exists.
  static_cast<void>(::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response));
  return true;
}

}  // namespace perfring::anomaly
