#include "harness/conformance/supervisor/cpu_lists.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "harness/program/checked.h"
#include "perfring/os/cpus.h"

namespace perfring::conformance {

CallAnswer CpuLists::open(const Tracee& caller, std::uint64_t path) {
  for (const std::string_view name : {"online", "possible", "present"}) {
    const std::string file = fmt::format("/sys/devices/system/cpu/{}", name);
    std::string requested_path(file.size() + 1, '\0');
    if (!caller.read(path, requested_path.data(), requested_path.size()) ||
        requested_path != std::string_view{file.c_str(), requested_path.size()}) {
      continue;
    }
    std::vector<std::uint32_t> cpus;
    for (std::uint32_t cpu = 0; cpu < case_.cpus; ++cpu) {
      if (name != "online" || !case_.absent.contains(cpu)) cpus.push_back(cpu);
    }
    const std::string list = os::to_cpu_list(cpus) + "\n";
    opened_ = os::Fd{checked(::memfd_create("cpus", MFD_CLOEXEC), "memfd_create")};
    checked(::pwrite(opened_.get(), list.data(), list.size(), 0), "pwrite");
    return {.fd = opened_.get()};
  }
  return {.by_kernel = true};
}

}  // namespace perfring::conformance
