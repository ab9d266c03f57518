#ifndef HARNESS_DIFFERENTIAL_REFERENCE_H_
#define HARNESS_DIFFERENTIAL_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "harness/rig/simulated_kernel.h"
#include "harness/script/script.h"

namespace perfring::differential {

// A step of a kernel that is right.
struct ReferenceStep {
  rig::Observed observed;
  // TIME of the sample that the step wrote, wherever it left one.
  std::uint64_t time = 0;
};

// The simulated kernel is compared with this: a kernel that a script's steps run on, or the
// recording of one.
class ReferenceKernel {
 public:
  virtual ~ReferenceKernel() = default;
  virtual const rig::Identity& identity() const = 0;
  virtual unsigned page_shift() const = 0;
  // The next step of the script.
  virtual ReferenceStep run(const script::Step& step) = 0;
  // The first byte at which the ring differs from these, after the last step; nullopt if none does.
  virtual std::optional<std::string> ring_difference(std::span<const std::byte> ring) = 0;
};

// The first step at which the simulated kernel differed.
struct Difference {
  std::size_t step;  // the number of the step, from 1
  const char* in;  // "result", "data_head", "data_tail", "LOST count" or "bytes"; the first of them
  std::string what;
};

// The totals of a comparison.
struct Compared {
  std::uint64_t scripts = 0;
  std::uint64_t steps = 0;
  std::uint64_t accepted = 0;   // outputs that returned 0
  std::uint64_t refused = 0;    // outputs that did not
  std::uint64_t truncated = 0;  // accepted, and longer than header.size can say
  std::uint64_t waits = 0;      // poll and epoll_wait
  std::uint64_t ready = 0;      // those that found an event ready
};

// Runs a script on both, and compares after every step all that can be seen: the result, data_head,
// data_tail, the events' LOST counts, every byte of the ring. Adds to `compared`.
// `stop` is asked before each step, and ends the comparison.
std::optional<Difference> compare(const script::Script& script, ReferenceKernel& reference,
                                  Compared& compared, const std::function<bool()>& stop = {});
// The same for another simulated kernel than that of rig, set up as the script and `reference` say.
std::optional<Difference> compare(const script::Script& script, ReferenceKernel& reference,
                                  rig::SimulatedKernel& simulated, Compared& compared,
                                  const std::function<bool()>& stop = {});

// The first byte at which two rings of the same size differ, for a person.
std::optional<std::string> first_difference(std::span<const std::byte> expected,
                                            std::span<const std::byte> actual);

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_REFERENCE_H_
