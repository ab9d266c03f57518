#include "harness/anomaly/calls.h"

#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

namespace perfring::anomaly {
namespace {

#define CALL(name)    \
  Call {              \
    #name, SYS_##name \
  }
constexpr Call kCalls[]{
    CALL(bind),
    CALL(bpf),
    CALL(brk),
    CALL(chdir),
    CALL(clock_gettime),
    CALL(clock_nanosleep),
    CALL(clone),
    CALL(clone3),
    CALL(close),
    CALL(dup),
    CALL(dup3),
    CALL(epoll_create1),
    CALL(epoll_ctl),
    CALL(epoll_pwait),
    CALL(epoll_pwait2),
    CALL(eventfd2),
    CALL(execve),
    CALL(exit),
    CALL(exit_group),
    CALL(faccessat),
    CALL(faccessat2),
    CALL(fadvise64),
    CALL(fchmod),
    CALL(fchmodat),
    CALL(fchown),
    CALL(fcntl),
    CALL(fstat),
    CALL(fstatfs),
    CALL(fsync),
    CALL(ftruncate),
    CALL(futex),
    CALL(getcwd),
    CALL(getdents64),
    CALL(getegid),
    CALL(geteuid),
    CALL(getgid),
    CALL(getpid),
    CALL(getppid),
    CALL(getrandom),
    CALL(getresuid),
    CALL(getrusage),
    CALL(gettid),
    CALL(getuid),
    CALL(ioctl),
    CALL(kill),
    CALL(lseek),
    CALL(madvise),
    CALL(membarrier),
    CALL(memfd_create),
    CALL(mkdirat),
    CALL(mmap),
    CALL(mprotect),
    CALL(mremap),
    CALL(munmap),
    CALL(nanosleep),
    CALL(newfstatat),
    CALL(openat),
    CALL(perf_event_open),
    CALL(pidfd_open),
    CALL(pidfd_send_signal),
    CALL(pipe2),
    CALL(ppoll),
    CALL(prctl),
    CALL(pread64),
    CALL(prlimit64),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(ptrace),
    CALL(pwrite64),
    CALL(read),
    CALL(readlinkat),
    CALL(readv),
    CALL(recvfrom),
    CALL(renameat2),
    CALL(restart_syscall),
    CALL(rseq),
    CALL(rt_sigaction),
    CALL(rt_sigprocmask),
    CALL(rt_sigreturn),
    CALL(rt_sigtimedwait),
    CALL(sched_getaffinity),
    CALL(sched_setaffinity),
    CALL(sched_yield),
    CALL(seccomp),
    CALL(sendto),
    CALL(set_robust_list),
    CALL(setpgid),
    CALL(setsid),
    CALL(sigaltstack),
    CALL(socket),
    CALL(socketpair),
    CALL(statfs),
    CALL(statx),
    CALL(sysinfo),
    CALL(tgkill),
    CALL(timer_create),
    CALL(timer_delete),
    CALL(timer_settime),
    CALL(umask),
    CALL(uname),
    CALL(unlinkat),
    CALL(unshare),
    CALL(utimensat),
    CALL(wait4),
    CALL(waitid),
    CALL(write),
    CALL(writev),
#ifdef SYS_poll  // newer architectures lack these
    CALL(access),
    CALL(alarm),
    CALL(arch_prctl),
    CALL(chmod),
    CALL(dup2),
    CALL(epoll_wait),
    CALL(fork),
    CALL(mkdir),
    CALL(open),
    CALL(pipe),
    CALL(poll),
    CALL(readlink),
    CALL(rename),
    CALL(rmdir),
    CALL(unlink),
    CALL(vfork),
#endif
};
#undef CALL

}  // namespace

std::span<const Call> calls() {
  return kCalls;
}

int number_of(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kCalls, [&](const Call& each) { return each.name == name; });
  return found == std::end(kCalls) ? -1 : found->number;
}

std::string name_of(int number) {
  const auto* const found = std::ranges::find(kCalls, number, &Call::number);
  return found == std::end(kCalls) ? "number " + std::to_string(number) : found->name;
}

}  // namespace perfring::anomaly
