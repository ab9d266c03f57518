#include "harness/program/privileges.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>

namespace perfring {
namespace {

// The first user namespace maps every id (user_namespaces(7)). A kernel without namespaces has no
// such file.
bool is_in_first_user_namespace() {
  std::ifstream file{"/proc/self/uid_map"};
  std::uint32_t inside{};
  std::uint32_t outside{};
  std::uint32_t length{};
  return !(file >> inside >> outside >> length) || length == 0xffff'ffff;
}

}  // namespace

bool has_capability(unsigned capability) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return true;
  return (data[capability / 32].effective >> (capability % 32) & 1) != 0;
}

bool is_root() {
  return ::geteuid() == 0 && has_capability(CAP_SYS_ADMIN) && is_in_first_user_namespace();
}

// The kernel answers unknown flags with EINVAL before it asks for a privilege.
bool is_perf_event_open_filtered() {
  constexpr unsigned long kUnknown = 1UL << 31;
  return ::syscall(SYS_perf_event_open, nullptr, 0, 0, -1, kUnknown) < 0 && errno == EPERM;
}

}  // namespace perfring
