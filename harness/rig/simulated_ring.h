#ifndef HARNESS_RIG_SIMULATED_RING_H_
#define HARNESS_RIG_SIMULATED_RING_H_

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/ring_memory.h"
#include "harness/script/script.h"
#include "perfring/perf_event.h"

namespace perfring::rig {

// The CPU, PID, TID and event IDs in samples.
struct Identity {
  int cpu = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::array<std::uint64_t, 2> ids{1, 2};  // of the events

  bool operator==(const Identity&) const = default;
};

// A ring of the simulated kernel that user space has set up: its events, open and mapped, and a
// PERF_EVENT_ARRAY with the events at the entries identity.cpu and identity.cpu + 1.
//
// Threads: one producer and one consumer, as for the simulated kernel.
class SimulatedRing {
 public:
  // Precondition: the settings are possible. Throws std::system_error if the machine has no memory
  // for the ring.
  explicit SimulatedRing(const script::Settings& settings, const Identity& identity = {},
                         unsigned page_shift = 12);
  // Uses the caller's memory: zeroed, a page followed by the data. It must outlive the ring.
  SimulatedRing(const script::Settings& settings, std::span<std::byte> memory,
                const Identity& identity = {}, unsigned page_shift = 12);
  SimulatedRing(const SimulatedRing&) = delete;
  SimulatedRing& operator=(const SimulatedRing&) = delete;

  const script::Settings& settings() const { return settings_; }
  const kernel::perf_file& file(bool second = false) const { return events_[second ? 1 : 0]; }
  kernel::perf_event& event(bool second = false) const { return *file(second); }
  std::span<const kernel::perf_file> events() const { return events_; }
  // Returns the index of the event's entry in the map.
  std::uint32_t index(bool second = false) const { return first_index_ + (second ? 1 : 0); }
  const kernel::bpf_array& map() const { return map_.map(); }
  // Opens one more event with this `attr` on the same CPU. It outputs to the same ring.
  kernel::perf_file open_beside(const perf_event_attr& attr, std::uint64_t id) const;
  // Puts the event into the map, in place of the first event.
  void enter(const kernel::perf_file& event);

  kernel::perf_buffer& rb() const { return mapping_.rb(); }
  perf_event_mmap_page& page() const { return *rb().user_page; }
  Bytes data() const { return {rb().data_pages, static_cast<std::size_t>(rb().data_size())}; }

 private:
  SimulatedRing(const script::Settings& settings, std::optional<kernel::RingMemory> own,
                std::span<std::byte> memory, const Identity& identity, unsigned page_shift);

  script::Settings settings_;
  std::uint32_t first_index_;
  std::optional<kernel::RingMemory> own_memory_;
  std::vector<kernel::perf_file> events_;
  kernel::perf_mapping mapping_;
  kernel::bpf_map_file map_;
};

// Returns the attr of a ring's events.
perf_event_attr attr_of(const script::Settings& settings);

}  // namespace perfring::rig

#endif  // HARNESS_RIG_SIMULATED_RING_H_
