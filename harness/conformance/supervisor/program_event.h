#ifndef HARNESS_CONFORMANCE_SUPERVISOR_PROGRAM_EVENT_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_PROGRAM_EVENT_H_

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/supervisor/tracee.h"
#include "harness/kernel/eventpoll.h"
#include "harness/rig/simulated_ring.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"

namespace perfring::conformance {

// A ring of the simulated kernel, in the memory that the program maps.
struct SimulatedBehind {
  std::unique_ptr<rig::SimulatedRing> ring;
  std::unique_ptr<kernel::EventfdWaiter> waiter;  // before the ring's end
};

// The producer behind a mapped ring; nothing if the case cannot be played there.
using RingBehind = std::variant<std::monostate, SimulatedBehind, std::unique_ptr<LiveRing>>;

// A perf event of the program, and its ring once it is mapped.
struct ProgramEvent {
  ProgramEvent();

  std::uint64_t pages() const { return memory().size() / 4096 - 1; }  // of data, once it is mapped
  bool is_mapped() const { return mapping.has_value(); }
  std::span<std::byte> memory() const {
    return mapping ? mapping->bytes() : std::span<std::byte>{};
  }
  perf_event_mmap_page& page() const {
    return *reinterpret_cast<perf_event_mmap_page*>(memory().data());
  }
  rig::SimulatedRing* simulated() const;
  // The ring as a case's producer writes it.
  CaseRing played() const;

  // Whether the program called read(2) on the descriptor. Its count is not emulated.
  bool was_read() const;
  void set_enabled(bool enabled);
  // Returns true if a wakeup was announced since the last call.
  bool take_flag() const;
  // Restores the wakeup that take_flag() took, because it reached nobody.
  void put_flag_back() const;

  perf_event_attr attr{};
  std::size_t cpu = 0;
  os::Fd file;           // the program has a copy of this descriptor
  std::uint64_t id = 0;  // the event's id in the machine's kernel
  os::Fd wake;           // an eventfd, which stands in for the event in epoll instances (P16)
  int epoll = -1;        // the epoll instance that contains it
  std::optional<os::Mapping> mapping{};  // control page and data pages
  RingBehind behind{};
  std::vector<std::uint64_t> bases{};  // addresses at which the program has mapped the ring
  std::uint64_t start = 0;             // data_head and data_tail before the case
  bool of_32_bits = false;
};

class Backend;

// All events of a program.
class ProgramEvents {
 public:
  explicit ProgramEvents(const Backend& backend) : backend_{backend} {}

  ProgramEvent& add(std::unique_ptr<ProgramEvent> event);
  // Returns the event of this descriptor of the thread's, or nullptr.
  ProgramEvent* find(const Tracee& thread, int fd) const;
  // Whether the program is an i386 one, as far as its events tell.
  bool are_of_32_bits() const { return !all_.empty() && all_.back()->of_32_bits; }

 private:
  const Backend& backend_;
  std::vector<std::unique_ptr<ProgramEvent>> all_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_PROGRAM_EVENT_H_
