// The system calls of a traced process: its supervisor's answers (P15), and the mmap of a ring
// between guard pages (P18).

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <cstdint>

#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/conformance/supervisor/tracee.h"

namespace perfring::conformance {
namespace {

constexpr std::uint64_t kPage = 4096;

}  // namespace

void TracedProcess::handle_notification() {
  seccomp_notif notified{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notified) != 0) return;
  const Tracee caller = tracee(static_cast<pid_t>(notified.pid));
  const CallAnswer its = handler_.call(caller, notified);
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
// Three calls replace the mmap: a reservation with room for guards, the ring in its middle, and an
// mprotect that makes the data read-only, as the kernel's own is (K5).
void TracedProcess::traced_mmap(pid_t thread) {
  constexpr std::uint64_t kNoFile = ~std::uint64_t{0};
  StoppedTracee caller{thread};
  const MapCall map_call{static_cast<int>(caller.argument(4)), caller.argument(1),
                         caller.argument(2), caller.argument(3), caller.argument(5)};
  const std::uint64_t length = map_call.length;
  const MapAnswer answer =
      caller.valid() ? handler_.maps_ring(tracee(thread), map_call) : MapAnswer{};
  if (answer.error != 0) {
    caller.call_mprotect(0, 0, PROT_NONE);  // has no effect, replaces the mmap
    caller.return_from_call(static_cast<std::uint64_t>(-std::int64_t{answer.error}));
  } else if (answer.is_ring) {
    const std::uint64_t reserved =
        caller.call_mmap({0, length + 2 * kGuard, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, kNoFile, 0});
    const std::uint64_t base = reserved + kGuard;
    const std::uint64_t mapped =
        caller.call_mmap({base, length, map_call.protection, map_call.flags | MAP_FIXED,
                          caller.argument(4), map_call.offset});
    if (mapped == base) {
      if (!handler_.is_kernel_owned) {
        caller.call_mprotect(base + 4096, length - 4096, PROT_READ);
      }
      handler_.mapped(base);
      // In the lowest page of the guard before the ring.
      if (handler_.accessed &&
          caller.call_mmap({reserved, kPage, PROT_READ | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, kNoFile, 0}) == reserved &&
          caller.write_call_instruction(reserved)) {
        caller.call_mprotect(base, kPage, PROT_NONE);
        watched_.push_back({base, reserved});
      }
    }
    caller.return_from_call(mapped);
  }
  if (const auto status = caller.end_status()) return handle_end({thread, *status, {}});
  ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
}

// The instruction is tried with the page readable. If it faults again, it is a store.
bool TracedProcess::handle_access(pid_t thread, const siginfo_t& fault) {
  const auto address = reinterpret_cast<std::uintptr_t>(fault.si_addr);
  const auto page = std::ranges::find_if(
      watched_, [&](const WatchedPage& each) { return address - each.base < kPage; });
  if (page == watched_.end()) return false;
  const auto [base, gate] = *page;
  PageAccess access{base, address - base};
  SteppedTracee stepped{thread};
  const auto allow = [&](int protection) {
    return stepped.call_mprotect(gate, base, kPage, protection);
  };
  if (!allow(PROT_READ)) return false;
  int ends_by = stepped.carry_out();
  if (ends_by == SIGSEGV) {
    access.moment = PageAccess::Moment::StoreDue;
    handler_.accessed(access);
    access.moment = PageAccess::Moment::StoreDone;
    ends_by = allow(PROT_READ | PROT_WRITE) ? stepped.carry_out() : SIGSEGV;
  }
  // An instruction that faults elsewhere too does so again, with the page accessible.
  if (ends_by == 0) {
    allow(PROT_NONE);
    handler_.accessed(access);
  }
  stepped.finish();
  if (const auto status = stepped.end_status()) {
    handle_end({thread, *status, {}});
  } else {
    ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
  }
  return true;
}
#else
void TracedProcess::traced_mmap(pid_t thread) {
  ::ptrace(PTRACE_CONT, thread, nullptr, 0L);
}

bool TracedProcess::handle_access(pid_t, const siginfo_t&) {
  return false;
}
#endif

}  // namespace perfring::conformance
