#ifndef HARNESS_STRESS_RUN_H_
#define HARNESS_STRESS_RUN_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"

namespace perfring::stress {

using Random = std::mt19937_64;

// Task, softirq, irq and NMI: each may interrupt the levels before it.
inline constexpr unsigned kLevelsMax = 4;

// One ring of a round, and its writers.
struct Setting {
  script::Settings ring{};
  unsigned levels = 1;  // number of levels that write, each with its own stream
  std::uint32_t first_stream = 0;
  std::uint32_t payload_max = 0;  // bytes
  unsigned calm = 1;              // the writer's steps between two disturbances, on average
  bool patient = false;           // the writer yields after -ENOSPC
  std::uint64_t seed = 0;
};

// Draws a random setting with `pages` data pages, or with 1 or 2 if `pages` is 0. Positions start
// at 0, or shortly before 2^32 or, on a 64-bit kernel, 2^64.
Setting draw(Random& random, std::size_t pages);

std::size_t ring_size(const Setting& setting);
// The longest payload that fits into an empty ring after a LOST.
std::uint32_t longest_payload(std::size_t ring_size);
// Describes the setting in one line, for reports.
std::string describe(const Setting& setting);

// The ring for a setting.
class StressRing : public rig::SimulatedRing {
 public:
  explicit StressRing(const Setting& setting) : SimulatedRing{setting.ring}, setting_{setting} {}
  const Setting& setting() const { return setting_; }

 private:
  Setting setting_;
};

using Clock = std::chrono::steady_clock;

// The options of a part. A part runs in rounds, each with new rings.
struct Run {
  double seconds = 1;
  unsigned rings = 3;     // maximum in a round
  std::size_t pages = 0;  // data pages of each ring; 0: 1 or 2, at random
  std::uint64_t seed = 1;
  std::chrono::milliseconds patience{10'000};    // how long to wait for a wakeup that must come
  bool keep_going = false;                       // continue after a violation
  const std::atomic<bool>* interrupt = nullptr;  // ends the run with the results so far

  bool interrupted() const { return interrupt != nullptr && interrupt->load(); }
};

// The totals of a part, and its violations.
struct PartReport {
  std::string part;
  std::uint64_t rounds = 0;
  std::uint64_t attempted = 0;         // outputs, whatever the answer
  std::uint64_t delivered = 0;         // records delivered
  std::uint64_t lost = 0;              // outputs refused
  std::uint64_t woken = 0;             // times that a sleeping consumer was woken
  std::uint64_t timed_out = 0;         // times that the timeout woke it with data in the ring
  std::uint64_t killed_in_record = 0;  // producers that died in an unpublished record
  double seconds = 0;
  std::vector<std::string> violations;  // the first few, each with its ring's setting

  bool holds() const { return violations.empty(); }
  void violate(const oracle::Violation& violation, const Setting& setting) {
    constexpr std::size_t kKept = 8;
    if (violations.size() == kKept) return;
    violations.push_back(to_string(violation) + " (" + describe(setting) + ")");
  }
};

// Stops the threads of a round when the round ends, also by an exception, for example from a thread
// that could not be started.
struct StopGuard {
  std::atomic<bool>& stop;
  ~StopGuard() { stop.store(true, std::memory_order_relaxed); }
};

// Runs `work` on a new thread. The returned future's destructor waits for the thread. Not a
// template: that would instantiate std::async for each kind of thread and add half a minute of
// compile time.
std::future<void> start_thread(std::function<void()> work);

// Draws the rings of one round: at least one.
std::vector<Setting> draw_rings(Random& random, const Run& run);

// Repeats `round(outcome, random)` until the time is over, or until a violation unless the run
// keeps going.
PartReport rounds(std::string part, const Run& run,
                  const std::function<void(PartReport&, Random&)>& round);

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_RUN_H_
