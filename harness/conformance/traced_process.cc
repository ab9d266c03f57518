#include "harness/conformance/traced_process.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <system_error>

namespace perfring::conformance {
namespace {

[[maybe_unused]] constexpr std::uint64_t kGuard = 2U << 20;  // on each side of a ring
constexpr int kSyscallStop = SIGTRAP | 0x80;

void check(long rc, const char* what) {
  if (rc < 0) throw std::system_error{errno, std::generic_category(), what};
}

// P15. mmap goes to the tracer where it has a descriptor.
#ifdef __x86_64__
std::vector<sock_filter> filter() {
  const auto load = [](std::size_t at) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(at)};
  };
  // Unless equal, over so many.
  const auto unless = [](std::uint64_t value, std::uint8_t skip) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, skip, static_cast<std::uint32_t>(value)};
  };
  const auto end = [](std::uint32_t action) { return sock_filter{BPF_RET | BPF_K, 0, 0, action}; };
  const auto low_word = [](std::size_t argument) {
    return offsetof(seccomp_data, args) + 8 * argument;
  };
  std::vector<sock_filter> program{load(offsetof(seccomp_data, arch)),
                                   {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64},
                                   end(SECCOMP_RET_ALLOW),
                                   load(offsetof(seccomp_data, nr))};
  for (const long call : {SYS_perf_event_open, SYS_bpf, SYS_epoll_ctl, SYS_epoll_wait,
                          SYS_epoll_pwait, SYS_epoll_pwait2, SYS_poll, SYS_ppoll}) {
    program.push_back(unless(static_cast<std::uint64_t>(call), 1));
    program.push_back(end(SECCOMP_RET_USER_NOTIF));
  }
  const std::vector<sock_filter> more{
      unless(SYS_ioctl, 6),
      load(low_word(1)),
      {BPF_ALU | BPF_RSH | BPF_K, 0, 0, _IOC_TYPESHIFT},
      {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xff},
      unless('$', 1),  // of perf events
      end(SECCOMP_RET_USER_NOTIF),
      end(SECCOMP_RET_ALLOW),
      unless(SYS_mmap, 4),
      load(low_word(4)),
      unless(0xffff'ffff, 1),
      end(SECCOMP_RET_ALLOW),
      end(SECCOMP_RET_TRACE),
      end(SECCOMP_RET_ALLOW),
  };
  program.insert(program.end(), more.begin(), more.end());
  return program;
}
#else
[[noreturn]] std::vector<sock_filter> filter() {
  throw std::system_error{ENOSYS, std::generic_category(), "the supervisor knows x86-64 only"};
}
#endif

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

void limit(int resource, rlim_t soft, rlim_t hard) {
  const rlimit value{soft, hard};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

// In the child, between fork() and exec(): installs the filter, tells the listener's number, waits
// until it is traced, and becomes the program. Returns where something failed.
void become(const std::vector<char*>& words, std::vector<sock_filter>& program, int to_parent,
            int from_parent) {
  sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  const long listener =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &loaded);
  const int number = listener < 0 ? -errno : static_cast<int>(listener);
  if (::write(to_parent, &number, sizeof(number)) != sizeof(number) || listener < 0) return;
  char go = 0;
  if (::read(from_parent, &go, 1) != 1) return;
  ::close(number);
  ::execvp(words.front(), words.data());
}

}  // namespace

TracedProcess::TracedProcess(const std::vector<std::string>& command, const Limits& limits,
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

// Nothing is left running: what it has forked is in its group, and traced.
void TracedProcess::end() const {
  if (group_ <= 0) return;
  ::kill(group_, SIGKILL);
  ::kill(-group_, SIGKILL);
  while (::waitpid(-group_, nullptr, __WALL) > 0 || errno == EINTR) {
  }
}

// By hand, not by harness/program/child_process.h: between fork() and exec() the child installs its
// filter.
void TracedProcess::start(const std::vector<std::string>& command, const Limits& limits) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<sock_filter> program = filter();
  std::array<int, 2> up{};
  std::array<int, 2> down{};
  check(::pipe2(up.data(), O_CLOEXEC), "pipe2");
  const os::Fd up_read{up[0]};
  os::Fd up_write{up[1]};
  check(::pipe2(down.data(), O_CLOEXEC), "pipe2");
  const os::Fd down_read{down[0]};
  const os::Fd down_write{down[1]};
  pid_ = ::fork();
  check(pid_, "fork");
  ::setpgid(pid_, pid_);  // here and there, whoever is first
  group_ = pid_;
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    ::dup2(out_.get(), STDOUT_FILENO);
    ::dup2(err_.get(), STDERR_FILENO);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
    limit(RLIMIT_FSIZE, static_cast<rlim_t>(limits.output), static_cast<rlim_t>(limits.output));
    become(words, program, up[1], down[0]);
    ::_exit(127);
  }
  up_write = os::Fd{};
  int number = 0;
  if (::read(up_read.get(), &number, sizeof(number)) != sizeof(number)) number = -EPERM;
  errno = number < 0 ? -number : 0;
  check(number, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)");
  pidfd_ = os::Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))};
  check(pidfd_.get(), "pidfd_open");
  listener_ = copy_of(number);
  check(listener_.get(), "pidfd_getfd");
  constexpr long kOptions = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD |
                            PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
                            PTRACE_O_TRACEVFORK;
  check(::ptrace(PTRACE_SEIZE, pid_, nullptr, kOptions), "ptrace(PTRACE_SEIZE)");
  check(::write(down_write.get(), "", 1), "write");
}

bool TracedProcess::step() {
  pollfd listener{listener_.get(), POLLIN, 0};
  ::poll(&listener, 1, 1);
  if ((listener.revents & POLLIN) != 0) notified();
  for (int status = 0;;) {
    const pid_t thread = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (thread <= 0) return true;
    if (WIFSTOPPED(status)) {
      stopped(thread, status);
    } else if (thread == pid_) {
      status_ = status;
      pid_ = -1;
      return false;
    }
  }
}

void TracedProcess::notified() {
  seccomp_notif notified{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notified) != 0) return;
  const Answer answer = handler_.call(notified);
  if (answer.later) return;
  if (answer.fd >= 0) {
    seccomp_notif_addfd add{};
    add.id = notified.id;
    add.flags = SECCOMP_ADDFD_FLAG_SEND;
    add.srcfd = static_cast<std::uint32_t>(answer.fd);
    add.newfd_flags = O_CLOEXEC;
    ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    return;
  }
  seccomp_notif_resp response{};
  response.id = notified.id;
  if (answer.by_kernel) response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  if (answer.value < 0) response.error = static_cast<int>(answer.value);
  if (answer.value > 0) response.val = answer.value;
  ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void TracedProcess::answer_later(std::uint64_t id, std::int64_t value) {
  seccomp_notif_resp response{};
  response.id = id;
  response.val = value;
  ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void TracedProcess::stopped(pid_t thread, int status) {
  const int number = WSTOPSIG(status);
  const int event = status >> 16;
  if (event == PTRACE_EVENT_SECCOMP) return traced_mmap(thread);
  const bool group_stop = event == PTRACE_EVENT_STOP && number != SIGTRAP;
  if (event != 0 && !group_stop) {
    ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
    return;
  }
  if (number == SIGSEGV || number == SIGBUS) {
    siginfo_t info{};
    if (::ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0) {
      fault_ = Fault{number, reinterpret_cast<std::uintptr_t>(info.si_addr)};
    }
  }
  const bool own = number == kSyscallStop || group_stop;
  ::ptrace(PTRACE_CONT, thread, nullptr, own ? 0L : long{number});
}

// The stop is at the call's entry. Three calls take its place: a reservation with room for guards,
// the ring in its middle, and its data made read-only (K5).
void TracedProcess::traced_mmap([[maybe_unused]] pid_t thread) {
#ifdef __x86_64__
  user_regs_struct asked{};
  const auto get = [&](user_regs_struct& into) {
    return ::ptrace(PTRACE_GETREGS, thread, nullptr, &into) == 0;
  };
  const bool ring = get(asked) && handler_.maps_ring(thread, static_cast<int>(asked.r8), asked.rsi);
  if (!ring) {
    ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
    return;
  }
  const auto set = [&](const user_regs_struct& registers) {
    return ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers) == 0;
  };
  // Up to the next stop: a system call's entry or exit, or the filter's.
  const auto run = [&] {
    int status = 0;
    return ::ptrace(PTRACE_SYSCALL, thread, nullptr, 0L) == 0 &&
           ::waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status);
  };
  user_regs_struct now = asked;
  const auto call = [&](long nr, std::array<std::uint64_t, 6> arguments) {
    now.orig_rax = static_cast<std::uint64_t>(nr);
    now.rax = static_cast<std::uint64_t>(nr);
    now.rdi = arguments[0], now.rsi = arguments[1], now.rdx = arguments[2];
    now.r10 = arguments[3], now.r8 = arguments[4], now.r9 = arguments[5];
    return set(now);
  };
  const auto again = [&] { now.rip -= 2; };  // the instruction `syscall`
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  bool done = call(SYS_mmap, {0, asked.rsi + 2 * kGuard, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, kNone, 0}) &&
              run() && get(now);
  const std::uint64_t base = now.rax + kGuard;
  again();
  done = done &&
         call(SYS_mmap, {base, asked.rsi, asked.rdx, asked.r10 | MAP_FIXED, asked.r8, asked.r9});
  for (int stops = 0; done && stops < 3; ++stops) {  // the entry, the filter, the exit
    done = run() && get(now);
    if (now.rax != static_cast<std::uint64_t>(-ENOSYS)) break;
  }
  const std::uint64_t mapped = now.rax;
  if (mapped == base) {
    again();
    done = done && call(SYS_mprotect, {base + 4096, asked.rsi - 4096, PROT_READ, 0, 0, 0}) &&
           run() && run() && get(now);
  }
  const std::uint64_t rip = now.rip;
  now = asked;
  now.rip = rip;
  now.rax = mapped;
  now.orig_rax = kNone;  // nothing to restart
  set(now);
  if (mapped == base) handler_.mapped(base, asked.rsi);
#endif
  ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
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

os::Fd TracedProcess::copy_of(int fd) const {
  return os::Fd{static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd_.get(), fd, 0))};
}

}  // namespace perfring::conformance
