#include "harness/conformance/supervisor/notified_calls.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "harness/conformance/cases/judge.h"
#include "harness/program/checked.h"
#include "perfring/os/fd.h"

namespace perfring::conformance {
namespace {

// The calls by their names in arch/x86/entry/syscalls/syscall_64.tbl and syscall_32.tbl at v6.18.
// Those that i386 has and x86-64 has not are empty there. i386's own `select` and `mmap` take their
// arguments from memory; no libc has called them since the years of Linux 2.4.
struct Name {
  NotifiedCall call;
  const char* x86_64;
  const char* i386;
};
constexpr std::array kNames{
    Name{NotifiedCall::PerfEventOpen, "perf_event_open", "perf_event_open"},
    Name{NotifiedCall::Bpf, "bpf", "bpf"},
    Name{NotifiedCall::Open, "open", "open"},
    Name{NotifiedCall::Openat, "openat", "openat"},
    Name{NotifiedCall::Ioctl, "ioctl", "ioctl"},
    Name{NotifiedCall::EpollCtl, "epoll_ctl", "epoll_ctl"},
    Name{NotifiedCall::EpollWait, "epoll_wait", "epoll_wait"},
    Name{NotifiedCall::EpollWait, "epoll_pwait", "epoll_pwait"},
    Name{NotifiedCall::EpollWait, "epoll_pwait2", "epoll_pwait2"},
    Name{NotifiedCall::Poll, "poll", "poll"},
    Name{NotifiedCall::Ppoll, "ppoll", "ppoll"},
    Name{NotifiedCall::PpollTime64, "", "ppoll_time64"},
    Name{NotifiedCall::Select, "select", "_newselect"},
    Name{NotifiedCall::Pselect, "pselect6", "pselect6"},
    Name{NotifiedCall::PselectTime64, "", "pselect6_time64"},
};

// A filter of libseccomp's, for one architecture or for several.
class Filter {
 public:
  Filter(std::uint32_t arch, const char* Name::* name, const char* mmap)
      : context_{seccomp_init(SCMP_ACT_ALLOW)} {
    if (context_ == nullptr) throw CannotRun{"seccomp_init: libseccomp has no memory"};
    // Calls by x32's numbers too.
    check(seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW));
    if (arch != seccomp_arch_native()) {
      check(seccomp_arch_add(context_.get(), arch));
      check(seccomp_arch_remove(context_.get(), SCMP_ARCH_NATIVE));
    }
    for (const Name& each : kNames) {
      if (*(each.*name) == '\0') continue;
      if (each.call == NotifiedCall::Ioctl) {
        constexpr scmp_datum_t kType = std::uint64_t{'$'} << 8;  // of perf events' requests
        add(SCMP_ACT_NOTIFY, each.*name, {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff00, kType)});
      } else {
        add(SCMP_ACT_NOTIFY, each.*name);
      }
    }
    add(SCMP_ACT_TRACE(0), mmap, {SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, 0)});
  }

  // Takes the other filter's architectures over.
  void merge(Filter other) {
    check(seccomp_merge(context_.get(), other.context_.get()));
    static_cast<void>(other.context_.release());  // seccomp_merge() has released it
  }

  std::vector<sock_filter> program() const {
    const os::Fd file{checked(::memfd_create("filter", MFD_CLOEXEC), "memfd_create")};
    check(seccomp_export_bpf(context_.get(), file.get()));
    const auto bytes = static_cast<std::size_t>(checked(::lseek(file.get(), 0, SEEK_END), "lseek"));
    std::vector<sock_filter> program(bytes / sizeof(sock_filter));
    checked(::pread(file.get(), program.data(), bytes, 0), "pread");
    return program;
  }

 private:
  static void check(int error) {
    if (error < 0) throw CannotRun{fmt::format("libseccomp: {}", std::strerror(-error))};
  }
  void add(std::uint32_t action, const char* name, const std::vector<scmp_arg_cmp>& when = {}) {
    check(seccomp_rule_add_array(context_.get(), action, seccomp_syscall_resolve_name(name),
                                 static_cast<unsigned>(when.size()), when.data()));
  }

  struct Release {
    void operator()(scmp_filter_ctx context) const { seccomp_release(context); }
  };
  std::unique_ptr<void, Release> context_;
};

}  // namespace

// Resolves the numbers once: libseccomp's names of numbers are allocated, and a failed allocation
// looks like an unknown call.
NotifiedCall notified_call(const seccomp_data& call) {
  using Numbers = std::array<int, kNames.size()>;
  const auto resolve = [](std::uint32_t arch, const char* Name::* name) {
    Numbers numbers;
    std::ranges::transform(kNames, numbers.begin(), [&](const Name& each) {
      return seccomp_syscall_resolve_name_arch(arch, each.*name);
    });
    return numbers;
  };
  static const Numbers x86_64 = resolve(SCMP_ARCH_X86_64, &Name::x86_64);
  static const Numbers i386 = resolve(SCMP_ARCH_X86, &Name::i386);
  const Numbers& numbers = call.arch == AUDIT_ARCH_I386 ? i386 : x86_64;
  const auto found = std::ranges::find(numbers, call.nr);
  if (call.nr < 0 || found == numbers.end()) return NotifiedCall::None;
  return kNames[static_cast<std::size_t>(found - numbers.begin())].call;
}

std::vector<sock_filter> filter_of_subjects() {
  seccomp_api_set(5);  // do not ask this machine's kernel: it answers when the filter is installed
  static const std::vector<sock_filter> program = [] {
    Filter filter{SCMP_ARCH_X86_64, &Name::x86_64, "mmap"};
    filter.merge({SCMP_ARCH_X86, &Name::i386, "mmap2"});
    return filter.program();
  }();
  return program;
}

}  // namespace perfring::conformance
