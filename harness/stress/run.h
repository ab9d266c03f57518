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

// Task, softirq, irq and NMI: each may interrupt those before it.
inline constexpr unsigned kLevelsMax = 4;

// One ring of a round, and its writers.
struct Setting {
  script::Settings ring{};
  unsigned levels = 1;  // how many of the above write, each a stream of its own
  std::uint32_t first_stream = 0;
  std::uint32_t payload_max = 0;  // bytes
  unsigned calm = 1;              // steps of the writer between two disturbances, on average
  bool patient = false;           // the writer yields after -ENOSPC
  std::uint64_t seed = 0;
};

// A setting by chance, of the data pages given, or 1 or 2 if 0 are. Its positions start at 0, or so
// that they soon cross 2^32 or, on a 64-bit kernel, 2^64.
Setting draw(Random& random, std::size_t pages);

std::size_t ring_size(const Setting& setting);
// The longest payload that finds room in an empty ring, with a LOST before it.
std::uint32_t longest_payload(std::size_t ring_size);
// One line that names it, for reports.
std::string describe(const Setting& setting);

// The ring of a setting.
class StressRing : public rig::SimulatedRing {
 public:
  explicit StressRing(const Setting& setting) : SimulatedRing{setting.ring}, setting_{setting} {}
  const Setting& setting() const { return setting_; }

 private:
  Setting setting_;
};

using Clock = std::chrono::steady_clock;

// The options of a part, which goes in rounds, each with rings of its own.
struct Run {
  double seconds = 1;
  unsigned rings = 3;     // at most, in a round
  std::size_t pages = 0;  // of each; 0: 1 or 2, by chance
  std::uint64_t seed = 1;
  std::chrono::milliseconds patience{10'000};    // with a wakeup that must come
  bool keep_going = false;                       // after a violation
  const std::atomic<bool>* interrupt = nullptr;  // ends it with what there is so far

  bool interrupted() const { return interrupt != nullptr && interrupt->load(); }
};

// The figures of a part, and what it violated.
struct PartOutcome {
  std::string part;
  std::uint64_t rounds = 0;
  std::uint64_t attempted = 0;         // outputs, however answered
  std::uint64_t delivered = 0;         // records
  std::uint64_t lost = 0;              // outputs refused
  std::uint64_t woken = 0;             // times that a consumer slept and was woken
  std::uint64_t timed_out = 0;         // times that it woke by its timeout, with data in the ring
  std::uint64_t killed_in_record = 0;  // producers that died with a record not yet published
  double seconds = 0;
  std::vector<std::string> violations;  // the first few, each with its ring

  bool holds() const { return violations.empty(); }
  void violate(const oracle::Violation& violation, const Setting& setting) {
    constexpr std::size_t kKept = 8;
    if (violations.size() == kKept) return;
    violations.push_back(to_string(violation) + " (" + describe(setting) + ")");
  }
};

// Stops the threads of a round when it ends, also by an exception: a thread that could not be
// started throws one.
struct StopAtTheEnd {
  std::atomic<bool>& stop;
  ~StopAtTheEnd() { stop.store(true, std::memory_order_relaxed); }
};

// Runs `work` on a thread of its own; to destroy what is returned is to wait for it. Not a
// template, which would make a std::async of each sort of thread, and take the compiler half a
// minute.
std::future<void> on_a_thread(std::function<void()> work);

// The rings of one round: at least one.
std::vector<Setting> draw_rings(Random& random, const Run& run);

// Repeats `round(outcome, random)` until the time is over, or something is violated and the run
// does not keep going.
PartOutcome rounds(std::string part, const Run& run,
                   const std::function<void(PartOutcome&, Random&)>& round);

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_RUN_H_
