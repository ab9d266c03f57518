#ifndef HARNESS_SCRIPT_SIMULATED_KERNEL_H_
#define HARNESS_SCRIPT_SIMULATED_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/ring_memory.h"
#include "harness/script/script.h"

namespace perfring::script {

// What records say of where they come from.
struct Identity {
  int cpu = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::array<std::uint64_t, 2> ids{1, 2};  // of the events

  bool operator==(const Identity&) const = default;
};

// What can be seen after a step, beside the ring's bytes.
struct Observed {
  // What the step returned: 0 or a negative errno; poll's revents; epoll_wait's events, those of
  // the second event 16 bits higher; 0 for a drain.
  std::int64_t result = 0;
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  std::array<std::uint64_t, 2> lost{};  // PERF_FORMAT_LOST of the events

  bool operator==(const Observed&) const = default;
};

// Where a consumer's data_tail is after `records` more, as their headers state it. Past a header
// that cannot be, or positions that cannot be, it is data_head; so it is in a ring that is written
// backward, in which only the newest record can be found.
std::uint64_t tail_after(std::span<const std::byte> ring, const Settings& settings,
                         std::uint64_t head, std::uint64_t tail, std::uint64_t records);

// The simulated kernel, set up as a script wants it.
class SimulatedKernel {
 public:
  // Precondition: the settings are possible, and so are the steps. Nobody interrupts them: steps
  // that are nested are carried out like any other.
  explicit SimulatedKernel(const Settings& settings, const Identity& identity = {},
                           unsigned page_shift = 12);

  // `time` is the time it is, for a sample's TIME.
  Observed run(const Step& step, std::uint64_t time = 0);

  std::span<const std::byte> ring() const;
  const perf_event_mmap_page& user_page() const { return *mapping_.rb().user_page; }

 private:
  struct ScriptCpu : kernel::HardwareCpu {
    std::uint64_t time = 0;
    __u64 clock() const { return time; }
  };

  std::int64_t act(const Step& step);
  std::int64_t output(const Step& step);
  std::int64_t epoll_wait();
  kernel::perf_event& event(bool second) const { return *events_[second ? 1 : 0]; }

  Settings settings_;
  ScriptCpu cpu_;
  kernel::RingMemory memory_;
  std::vector<kernel::perf_file> events_;
  kernel::perf_mapping mapping_;
  std::shared_ptr<kernel::bpf_array> map_ = std::make_shared<kernel::bpf_array>(2);
  kernel::bpf_map_file map_file_{map_};
  kernel::eventpoll epoll_;
  std::vector<std::byte> payload_;
  std::uint64_t steps_ = 0;
};

// The attr of a script's events.
perf_event_attr attr_of(const Settings& settings);
std::uint32_t epoll_events(Epoll epoll);

}  // namespace perfring::script

#endif  // HARNESS_SCRIPT_SIMULATED_KERNEL_H_
