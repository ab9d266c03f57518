#include "harness/conformance/supervisor/program_event.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "harness/conformance/supervisor/backend.h"
#include "harness/kernel/perf_event.h"
#include "harness/program/checked.h"

namespace perfring::conformance {

ProgramEvent::ProgramEvent()
    : file{checked(::memfd_create("perf_event", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create")},
      wake{checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")} {
  checked(::ftruncate(file.get(), 4096), "ftruncate");  // one page to read, for was_read()
}

rig::SimulatedRing* ProgramEvent::simulated() const {
  const auto* const ring = std::get_if<SimulatedBehind>(&behind);
  return ring == nullptr ? nullptr : ring->ring.get();
}

CaseRing ProgramEvent::played() const {
  if (const auto* const live = std::get_if<std::unique_ptr<LiveRing>>(&behind)) return live->get();
  return simulated();
}

// The program's descriptor shares this one's offset, which a read moves. One of the machine's
// kernel has no offset.
bool ProgramEvent::was_read() const {
  return ::lseek(file.get(), 0, SEEK_CUR) > 0;
}

void ProgramEvent::set_enabled(bool enabled) {
  attr.disabled = enabled ? 0 : 1;
  if (rig::SimulatedRing* const ring = simulated()) {
    enabled ? kernel::perf_event_enable(ring->event()) : kernel::perf_event_disable(ring->event());
  }
}

bool ProgramEvent::take_flag() const {
  std::uint64_t count = 0;
  return ::read(wake.get(), &count, sizeof(count)) == sizeof(count);
}

void ProgramEvent::put_flag_back() const {
  static_cast<void>(::eventfd_write(wake.get(), 1));
}

ProgramEvent& ProgramEvents::add(std::unique_ptr<ProgramEvent> event) {
  all_.push_back(std::move(event));
  return *all_.back();
}

ProgramEvent* ProgramEvents::find(const Tracee& thread, int fd) const {
  const os::Fd copy = thread.copy_of(fd);
  if (copy.get() < 0) return nullptr;
  for (const auto& event : all_) {
    if (backend_.is_of(*event, copy)) return event.get();
  }
  return nullptr;
}

}  // namespace perfring::conformance
