#include "harness/conformance/supervisor/perf_calls.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <utility>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"

namespace perfring::conformance {
namespace {

constexpr std::uint64_t kRingMax = 64U << 20;
constexpr std::uint32_t kIdOfI386 = 0x8004'2407;  // PERF_EVENT_IOC_ID, with a pointer of 4 bytes

CallAnswer write_id(const Tracee& caller, std::uint64_t address, const ProgramEvent& event) {
  const std::uint64_t id = identity_of_cpu(event.cpu).ids[0];
  return {.value = caller.write(address, &id, sizeof(id)) ? 0 : -EFAULT};
}

}  // namespace

CallAnswer PerfCalls::perf_event_open(const Tracee& caller, const seccomp_data& call) {
  perf_event_attr attr{};
  std::uint32_t size = 0;
  const std::uint64_t address = call.args[0];
  if (!caller.read(address + offsetof(perf_event_attr, size), &size, sizeof(size))) {
    return {.value = -EFAULT};
  }
  if (size == 0) size = PERF_ATTR_SIZE_VER0;
  const std::size_t known = std::min<std::size_t>(size, sizeof(attr));
  if (!caller.read(address, &attr, known)) return {.value = -EFAULT};
  if (attr.type != PERF_TYPE_SOFTWARE || attr.config != PERF_COUNT_SW_BPF_OUTPUT) {
    return {.by_kernel = true};
  }
  const auto cpu = std::max(static_cast<std::int32_t>(call.args[2]), 0);
  const Case& of = listener_.played_case();
  if (static_cast<std::uint64_t>(cpu) >= of.cpus) return {.value = -EINVAL};
  if (of.absent.contains(static_cast<std::uint64_t>(cpu))) return {.value = -ENODEV};  // K34
  auto event = std::make_unique<ProgramEvent>();
  event->attr = attr;
  event->cpu = static_cast<std::size_t>(cpu);
  event->of_32_bits = call.arch == AUDIT_ARCH_I386;
  if (const int error = backend_.open(*event); error != 0) return {.value = -error};
  return {.fd = events_.add(std::move(event)).file.get()};
}

CallAnswer PerfCalls::ioctl(const Tracee& caller, const seccomp_data& call) {
  ProgramEvent* const event = events_.find(caller, static_cast<int>(call.args[0]));
  if (event == nullptr || backend_.carries_out_calls()) return {.by_kernel = true};
  const auto request = static_cast<std::uint32_t>(call.args[1]);
  if (request == kIdOfI386) return write_id(caller, call.args[2], *event);
  switch (request) {
    case PERF_EVENT_IOC_ENABLE:
    case PERF_EVENT_IOC_DISABLE:
      event->set_enabled(request == PERF_EVENT_IOC_ENABLE);
      if (event->attr.disabled == 0) listener_.on_enabled(*event);
      return {};
    case PERF_EVENT_IOC_ID:
      return write_id(caller, call.args[2], *event);
    case PERF_EVENT_IOC_RESET:
      return {};
    default:
      listener_.on_not_emulated(fmt::format("ioctl {:#x}", call.args[1]));
      return {.value = -ENOTTY};
  }
}

MapAnswer PerfCalls::refuse(const MapCall& call, const std::string& why) {
  listener_.on_map_refused(fmt::format("an mmap of {} bytes is refused: {}", call.length, why));
  return {.error = EINVAL};
}

// Checks what perf_mmap() checks (kernel/events/core.c at v6.18): a shared mapping from offset 0,
// with a power of two data pages. Another mapping of a ring must be as long as the first.
MapAnswer PerfCalls::map_ring(const Tracee& caller, const MapCall& call) {
  ProgramEvent* const event = events_.find(caller, call.fd);
  if (event == nullptr) return {};
  const std::uint64_t pages = call.length / 4096 - 1;
  if (call.length % 4096 != 0 || !std::has_single_bit(pages)) {
    return refuse(call, "it must have a control page and a power of two data pages");
  }
  if ((call.flags & MAP_SHARED) == 0 || call.offset != 0 || call.length > kRingMax) {
    return refuse(call, "it must be shared, from offset 0, and of at most 64 MiB");
  }
  if (event->is_mapped() && event->memory().size() != call.length) {
    return refuse(call, "the ring is already mapped with another length");
  }
  if ((call.protection & PROT_WRITE) == 0) {
    listener_.on_not_emulated("an overwritable ring, that is, a ring mapped read-only,");
  }
  if ((call.flags & MAP_FIXED) != 0) listener_.on_not_emulated("a ring at a fixed address");
  mapping_ = event;
  if (event->is_mapped()) return {.is_ring = true};
  if (backend_.map_ring(*event, static_cast<std::size_t>(call.length)) != 0) return {};
  listener_.on_map(*event);
  return {.is_ring = true};
}

}  // namespace perfring::conformance
