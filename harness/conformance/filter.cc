// The seccomp filter of a traced process, and the system calls that it has notified (P15).

#include <linux/audit.h>
#include <linux/filter.h>
#include <sys/ioctl.h>

#include <array>
#include <cstddef>

#include "harness/conformance/traced_process.h"

namespace perfring::conformance {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Numbers as in arch/x86/entry/syscalls/syscall_64.tbl and syscall_32.tbl at v6.18.
struct Number {
  Emulated call;
  std::uint32_t x86_64;
  std::uint32_t i386;
};
constexpr std::array kNumbers{
    Number{Emulated::PerfEventOpen, 298, 336},
    Number{Emulated::Bpf, 321, 357},
    Number{Emulated::Ioctl, 16, 54},
    Number{Emulated::EpollCtl, 233, 255},
    Number{Emulated::EpollWait, 232, 256},
    Number{Emulated::EpollWait, 281, 319},  // epoll_pwait
    Number{Emulated::EpollWait, 441, 441},  // epoll_pwait2
    Number{Emulated::Poll, 7, 168},
    Number{Emulated::Ppoll, 271, 309},
    Number{Emulated::PpollTime64, kNone, 414},
};

constexpr sock_filter load(std::size_t at) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(at)};
}
constexpr sock_filter load_argument(std::size_t argument) {
  return load(offsetof(seccomp_data, args) + 8 * argument);  // its low word
}
// Unless they are equal, skips so many.
constexpr sock_filter unless(std::uint32_t value, std::size_t skip) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, static_cast<std::uint8_t>(skip), value};
}
constexpr sock_filter end(std::uint32_t action) {
  return {BPF_RET | BPF_K, 0, 0, action};
}

// For the calls of one architecture. mmap goes to the tracer where it has a descriptor.
std::vector<sock_filter> filter_of(std::uint32_t Number::* number, std::uint32_t mmap) {
  std::vector<sock_filter> program{load(offsetof(seccomp_data, nr))};
  std::uint32_t ioctl = kNone;
  for (const Number& each : kNumbers) {
    if (each.call == Emulated::Ioctl) {
      ioctl = each.*number;
    } else if (each.*number != kNone) {
      program.push_back(unless(each.*number, 1));
      program.push_back(end(SECCOMP_RET_USER_NOTIF));
    }
  }
  const std::vector<sock_filter> more{
      unless(ioctl, 6),
      load_argument(1),
      {BPF_ALU | BPF_RSH | BPF_K, 0, 0, _IOC_TYPESHIFT},
      {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xff},
      unless('$', 1),  // of perf events
      end(SECCOMP_RET_USER_NOTIF),
      end(SECCOMP_RET_ALLOW),
      unless(mmap, 4),
      load_argument(4),  // the descriptor
      unless(0xffff'ffff, 1),
      end(SECCOMP_RET_ALLOW),
      end(SECCOMP_RET_TRACE),
      end(SECCOMP_RET_ALLOW),
  };
  program.insert(program.end(), more.begin(), more.end());
  return program;
}

}  // namespace

Emulated emulated(const seccomp_data& call) {
  const auto number = call.arch == AUDIT_ARCH_I386 ? &Number::i386 : &Number::x86_64;
  for (const Number& each : kNumbers) {
    if (each.*number == static_cast<std::uint32_t>(call.nr)) return each.call;
  }
  return Emulated::None;
}

std::vector<sock_filter> filter_of_subjects() {
  constexpr std::uint32_t kMmap = 9;
  constexpr std::uint32_t kMmap2 = 192;
  std::vector<sock_filter> program{load(offsetof(seccomp_data, arch))};
  for (const auto& [arch, part] : {std::pair{AUDIT_ARCH_X86_64, filter_of(&Number::x86_64, kMmap)},
                                   {AUDIT_ARCH_I386, filter_of(&Number::i386, kMmap2)}}) {
    program.push_back(unless(arch, part.size()));
    program.insert(program.end(), part.begin(), part.end());
  }
  program.push_back(end(SECCOMP_RET_ALLOW));
  return program;
}

}  // namespace perfring::conformance
