#include "harness/live/capabilities.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace perfring::live {
namespace {

bool has_capability(unsigned capability) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return true;  // then it is not to blame
  return (data[capability / 32].effective >> (capability % 32) & 1) != 0;
}

}  // namespace

std::string missing_capabilities() {
  if (has_capability(CAP_SYS_ADMIN)) return {};
  const bool bpf = has_capability(CAP_BPF);
  const bool perfmon = has_capability(CAP_PERFMON);
  if (!bpf && !perfmon) return "CAP_BPF and CAP_PERFMON";
  if (!bpf) return "CAP_BPF";
  return perfmon ? "" : "CAP_PERFMON";
}

}  // namespace perfring::live
