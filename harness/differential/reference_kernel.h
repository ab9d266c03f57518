#ifndef HARNESS_DIFFERENTIAL_REFERENCE_KERNEL_H_
#define HARNESS_DIFFERENTIAL_REFERENCE_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "harness/rig/simulated_kernel.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"

namespace perfring::differential {

// One step as run on the reference kernel.
struct ReferenceStep {
  rig::Observed observed;
  // TIME of the sample that the step wrote, if it wrote one.
  std::uint64_t time = 0;
};

// The kernel with which the simulated one is compared: it runs a script's steps, or replays a
// recording.
class ReferenceKernel {
 public:
  virtual ~ReferenceKernel() = default;
  virtual const rig::Identity& identity() const = 0;
  virtual unsigned page_shift() const = 0;
  // Runs the next step of the script.
  virtual ReferenceStep run(const script::Step& step) = 0;
  // Compares `ring` with this kernel's ring after the last step. Describes the first byte that
  // differs, or returns nullopt.
  virtual std::optional<std::string> ring_difference(std::span<const std::byte> ring) = 0;
};

// The first step at which the simulated kernel differed.
struct Difference {
  std::size_t step;  // counted from 1
  const char* in;  // "result", "data_head", "data_tail", "LOST count" or "bytes"; the first of them
  std::string what;
};

// The totals of a comparison.
struct Compared {
  std::uint64_t scripts = 0;
  std::uint64_t steps = 0;
  std::uint64_t accepted = 0;   // outputs that returned 0
  std::uint64_t refused = 0;    // outputs that returned an error
  std::uint64_t truncated = 0;  // accepted outputs that are too long for header.size
  std::uint64_t waits = 0;      // poll and epoll_wait calls
  std::uint64_t ready = 0;      // waits that found an event ready
};

// Runs a script on both kernels. After every step it compares all observable state: the result,
// data_head, data_tail, the events' LOST counts, every byte of the ring. Adds to `compared`. Calls
// `stop` before each step, and ends if it returns true.
std::optional<Difference> compare(const script::Script& script, ReferenceKernel& reference,
                                  Compared& compared, const std::function<bool()>& stop = {});
// The same for a SimulatedKernel other than rig's, set up as the script and `reference` require.
std::optional<Difference> compare(const script::Script& script, ReferenceKernel& reference,
                                  rig::SimulatedKernel& simulated, Compared& compared,
                                  const std::function<bool()>& stop = {});

// Describes the first byte at which two rings of the same size differ, for a human.
std::optional<std::string> first_difference(std::span<const std::byte> expected,
                                            std::span<const std::byte> actual);

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_REFERENCE_KERNEL_H_
