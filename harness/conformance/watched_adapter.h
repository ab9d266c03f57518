#ifndef HARNESS_CONFORMANCE_WATCHED_ADAPTER_H_
#define HARNESS_CONFORMANCE_WATCHED_ADAPTER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/conformance/cases/judge.h"
#include "harness/conformance/cases/vector.h"
#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/conformance/supervisor/tracee.h"
#include "perfring/os/fd.h"

namespace perfring::conformance {

// One run of an adapter whose accesses to the ring's control page are watched, as an unmodified
// program's are: while it drains, the producer writes, and overwrites what it has released.
class WatchedAdapter {
 public:
  // Starts it. `early` is what of the next turn is written meanwhile. The references must outlive
  // this object. Throws CannotRun if this system allows no tracing.
  WatchedAdapter(const std::vector<std::string>& command, RingImage& image,
                 const std::vector<Early>& early, bool is_plain, const ProcessLimits& limits,
                 Cell& cell);

  TracedProcess& process() { return process_; }
  // Whether it has mapped the ring, so that its accesses were seen.
  bool has_mapped() const { return !bases_.empty(); }
  // Returns what the accesses tell about a failure: "data_tail was moved to 160 while its records
  // were still being read". `died`: the adapter crashed while it read. "" if they tell nothing.
  std::string explain(std::span<const Event> delivered, bool died) const;
  // Returns the last part that was written meanwhile and that data_tail has reached, or nullptr.
  const Early* consumed() const;

 private:
  MapAnswer maps_ring(const Tracee& caller, const MapCall& call) const;
  void access(const PageAccess& access);
  void write(During::Place place);
  void on_fault(const Crash& fault);

  RingImage& image_;
  const std::vector<Early>& early_;
  const bool is_plain_;
  Cell& cell_;
  std::size_t written_ = 0;           // of `early`
  Tails due_{};                       // before a store that is due
  std::vector<std::uint64_t> heads_;  // as they were read
  std::vector<std::uint64_t> tails_;  // as they were stored
  std::vector<std::uint64_t> bases_;
  TracedProcess process_;  // last: its handlers use all of the above
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_WATCHED_ADAPTER_H_
