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
constexpr std::uint64_t kAccessesMax = 4096;  // that are watched, of a page
constexpr std::uint64_t kNoFile = ~std::uint64_t{0};

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
// Returns the address at which the ring is mapped, between guards. A mapping at an address that the
// program chooses has none.
std::uint64_t TracedProcess::map_between_guards(StoppedTracee& caller, const MapCall& call) {
  std::uint64_t base = caller.argument(0);
  if ((call.flags & MAP_FIXED) == 0) {
    const std::uint64_t reserved =
        caller.call_mmap({0, call.length + 2 * kGuard, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, kNoFile, 0});
    base = reserved + kGuard;
  }
  return caller.call_mmap({base, call.length, call.protection, call.flags | MAP_FIXED,
                           caller.argument(4), call.offset});
}

// Takes the page's permissions away, once there is an instruction that can give them back.
void TracedProcess::watch(StoppedTracee& caller, std::uint64_t base) {
  const std::uint64_t gate =
      caller.call_mmap({0, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, kNoFile, 0});
  if (!caller.write_call_instruction(gate)) return;
  caller.call_mprotect(base, kPage, PROT_NONE);
  watched_.push_back({base, gate});
}

// Several calls replace the mmap: a reservation with room for guards, the ring in its middle, and
// an mprotect that makes the data read-only, as the kernel's own is (K5).
void TracedProcess::traced_mmap(pid_t thread) {
  StoppedTracee caller{thread};
  const MapCall map_call{static_cast<int>(caller.argument(4)), caller.argument(1),
                         caller.argument(2), caller.argument(3), caller.argument(5)};
  const MapAnswer answer =
      caller.valid() ? handler_.maps_ring(tracee(thread), map_call) : MapAnswer{};
  if (answer.error != 0) {
    caller.call_mprotect(0, 0, PROT_NONE);  // has no effect, replaces the mmap
    caller.return_from_call(static_cast<std::uint64_t>(-std::int64_t{answer.error}));
  } else if (answer.is_ring) {
    const std::uint64_t base = map_between_guards(caller, map_call);
    if (base % kPage == 0) {  // not an error
      if (!handler_.is_kernel_owned) {
        caller.call_mprotect(base + kPage, map_call.length - kPage, PROT_READ);
      }
      handler_.mapped(base);
      if (handler_.accessed) watch(caller, base);
    }
    caller.return_from_call(base);
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
  const std::uint64_t base = page->base;
  const std::uint64_t gate = page->gate;
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
  // An instruction that faults elsewhere too does so again, now for good. A program that never
  // stops reading would take minutes until it has flooded its output.
  const bool is_last = ends_by != 0 || ++page->accesses == kAccessesMax;
  allow(is_last ? PROT_READ | PROT_WRITE : PROT_NONE);
  if (ends_by == 0) handler_.accessed(access);
  if (is_last) watched_.erase(page);
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
