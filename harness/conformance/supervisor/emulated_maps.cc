// The calls by which a traced program maps its rings.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/conformance/supervisor/emulated_calls.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/kernel/ring_memory.h"

namespace perfring::conformance {

constexpr std::uint64_t kRingMax = 64U << 20;

// Checks what perf_mmap() checks (kernel/events/core.c at v6.18): a shared mapping from offset 0,
// with a power of two data pages. Another mapping of a ring must be as long as the first.
MapAnswer EmulatedCalls::map(pid_t thread, const MapCall& call) {
  ProgramEvent* const event = event_of(thread, call.fd);
  if (event == nullptr) return {};
  const std::uint64_t pages = call.length / 4096 - 1;
  const auto refused = [&](const std::string& why) {
    listener_.on_map_refused(fmt::format("an mmap of {} bytes is refused: {}", call.length, why));
    return MapAnswer{.error = EINVAL};
  };
  if (call.length % 4096 != 0 || !std::has_single_bit(pages)) {
    return refused("it must have a control page and a power of two data pages");
  }
  if ((call.flags & MAP_SHARED) == 0 || call.offset != 0 || call.length > kRingMax) {
    return refused("it must be shared, from offset 0, and of at most 64 MiB");
  }
  if (!event->memory.empty() && event->memory.size() != call.length) {
    return refused("the ring is already mapped with another length");
  }
  if ((call.protection & PROT_WRITE) == 0) {
    listener_.on_not_emulated("an overwritable ring, that is, a ring mapped read-only,");
  }
  if ((call.flags & MAP_FIXED) != 0) listener_.on_not_emulated("a ring at a fixed address");
  mapping_ = event;
  if (!event->memory.empty()) return {.is_ring = true};
  if (!make_memory(*event, call.length)) return {};
  listener_.on_map(*event);
  return {.is_ring = true};
}

bool EmulatedCalls::make_memory(ProgramEvent& event, std::uint64_t length) {
  const int fd = event.file.get();
  const bool is_ours = emitter_ == nullptr;
  if (is_ours && kernel::give_length(fd, static_cast<std::size_t>(length)) != 0) return false;
  void* const memory =
      ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return false;
  event.memory = {static_cast<std::byte*>(memory), static_cast<std::size_t>(length)};
  return true;
}

}  // namespace perfring::conformance
