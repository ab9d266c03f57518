#ifndef HARNESS_RIG_SIMULATED_KERNEL_H_
#define HARNESS_RIG_SIMULATED_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"

namespace perfring::rig {

// Everything that can be observed after a step, except the ring's bytes.
struct Observed {
  // The step's return value: 0 or a negative errno; poll's revents; epoll_wait's events, with the
  // bits of the second event 16 higher; 0 for a drain.
  std::int64_t result = 0;
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  std::array<std::uint64_t, 2> lost{};  // PERF_FORMAT_LOST of the events

  bool operator==(const Observed&) const = default;
};

// Returns a consumer's data_tail after `records` more records, by the sizes in their headers. After
// an impossible header or impossible positions it is data_head. In a ring that is written backward
// it is also data_head, because only the newest record can be found.
std::uint64_t tail_after(std::span<const std::byte> ring, const script::Settings& settings,
                         std::uint64_t head, std::uint64_t tail, std::uint64_t records);

// The CPU of a SimulatedKernel: no time passes during a step. A faulty kernel's CPU derives from
// it.
struct StepCpu : kernel::HardwareCpu {
  std::uint64_t time = 0;
  __u64 clock() const { return time; }
};

// The simulated kernel with a script's settings, without a consumer: a drain only moves data_tail.
class SimulatedKernel {
 public:
  // Precondition: the settings and the steps are possible.
  explicit SimulatedKernel(const script::Settings& settings, const Identity& identity = {},
                           unsigned page_shift = 12);
  // Uses the caller's memory (see SimulatedRing).
  SimulatedKernel(const script::Settings& settings, std::span<std::byte> memory);
  virtual ~SimulatedKernel() = default;

  // `time` is the current time, for a sample's TIME. A nested step is run like any other.
  Observed run(const script::Step& step, std::uint64_t time = 0);

  // Does a system call other than an output or a drain. Returns the value for Observed::result.
  std::int64_t call(const script::Step& step);

  SimulatedRing& ring() { return ring_; }
  const SimulatedRing& ring() const { return ring_; }

 private:
  // Calls bpf_perf_event_output() on this CPU.
  virtual int emit(StepCpu& cpu, std::uint32_t index, std::span<const std::byte> payload);

  void register_events();
  std::int64_t act(const script::Step& step);
  std::int64_t output(const script::Step& step);
  std::int64_t epoll_wait();

  SimulatedRing ring_;
  StepCpu cpu_;
  kernel::eventpoll epoll_;
  std::vector<std::byte> payload_;
  std::uint64_t steps_ = 0;
};

// A SimulatedKernel with a fault. `Cpu` derives from StepCpu.
template <class Cpu>
class FaultyKernel final : public SimulatedKernel {
 public:
  using SimulatedKernel::SimulatedKernel;

 private:
  int emit(StepCpu& cpu, std::uint32_t index, std::span<const std::byte> payload) override {
    static_cast<StepCpu&>(cpu_) = cpu;
    return kernel::bpf_perf_event_output(cpu_, ring().map(), index, payload);
  }

  Cpu cpu_;
};

// Returns the events in the form that epoll_ctl(2) takes.
std::uint32_t epoll_events(script::Epoll epoll);

}  // namespace perfring::rig

#endif  // HARNESS_RIG_SIMULATED_KERNEL_H_
