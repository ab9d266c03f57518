#include "harness/conformance/supervisor/backend.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/supervisor/tracee.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_memory.h"
#include "harness/program/checked.h"
#include "harness/rig/simulated_ring.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"

namespace perfring::conformance {
// All maps of the kernel share one inode, but each has an id.
bool Backend::is_map(const os::Fd& file) const {
  if (file.get() < 0) return false;
  const auto own = os::bpf_map_info_of(map().get());
  if (!own) return are_one_file(file.get(), map().get());
  const auto its = os::bpf_map_info_of(file.get());
  return its && its->id == own->id;
}

SimulatedBackend::SimulatedBackend(bool loads_programs)
    : map_{checked(::memfd_create("bpf_map", MFD_CLOEXEC), "memfd_create")} {
  if (!loads_programs) return;
  auto map = os::bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 64, 0);
  if (map) map_ = *std::move(map);
}

int SimulatedBackend::open(ProgramEvent&) const {
  return 0;  // ProgramEvent's constructor has made the memfd
}

bool SimulatedBackend::is_of(const ProgramEvent& event, const os::Fd& file) const {
  return are_one_file(event.file.get(), file.get());
}

int SimulatedBackend::map_ring(ProgramEvent& event, std::size_t length) const {
  if (const int error = kernel::give_length(event.file.get(), length); error != 0) return error;
  auto mapping = os::Mapping::map(event.file.get(), length);
  if (!mapping) return mapping.error().value();
  event.mapping = *std::move(mapping);
  return 0;
}

void SimulatedBackend::make_producer(ProgramEvent& event, const script::Settings& settings,
                                     bool) const {
  SimulatedBehind behind;
  behind.ring =
      std::make_unique<rig::SimulatedRing>(settings, event.memory(), identity_of_cpu(event.cpu));
  behind.waiter = std::make_unique<kernel::EventfdWaiter>(behind.ring->file(), event.wake.get());
  if (event.attr.disabled != 0) kernel::perf_event_disable(behind.ring->event());
  event.behind = std::move(behind);
}

}  // namespace perfring::conformance
