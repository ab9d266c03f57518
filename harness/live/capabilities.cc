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

std::string advice_on_capabilities(bool has_bpf, bool has_perfmon) {
  if (has_bpf && has_perfmon) return {};
  const bool both = !has_bpf && !has_perfmon;
  const std::string lacking = both      ? "CAP_BPF and CAP_PERFMON"
                              : has_bpf ? "CAP_PERFMON"
                                        : "CAP_BPF";
  return "This process lacks " + lacking + ": run as root, or grant " + (both ? "them" : "it");
}

std::string advice_on_capabilities() {
  if (has_capability(CAP_SYS_ADMIN)) return {};
  return advice_on_capabilities(has_capability(CAP_BPF), has_capability(CAP_PERFMON));
}

}  // namespace perfring::live
