#include "perfring/wait/writer_barrier.h"

#include <linux/bpf.h>

#include <cstdint>

#include "perfring/os/syscalls.h"

namespace perfring {

WriterBarrier WriterBarrier::create() noexcept {
  auto inner = os::bpf_map_create(BPF_MAP_TYPE_ARRAY, 1, 0);
  if (!inner) return {os::Fd{}, os::Fd{}};
  auto outer = os::bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, 1, inner->get());
  if (!outer) return {os::Fd{}, os::Fd{}};
  return {*std::move(inner), *std::move(outer)};
}

std::expected<void, RingsError> WriterBarrier::wait() const {
  if (outer_.get() >= 0 &&
      os::bpf_map_update(outer_.get(), 0, static_cast<std::uint32_t>(inner_.get()))) {
    return {};
  }
  if (const auto waited = os::membarrier_global(); !waited) {
    return internal::failed("membarrier", "all CPUs", waited.error());
  }
  return {};
}

}  // namespace perfring
