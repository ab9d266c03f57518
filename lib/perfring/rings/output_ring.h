#ifndef PERFRING_RINGS_OUTPUT_RING_H_
#define PERFRING_RINGS_OUTPUT_RING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// OutputRing: one CPU's ring in a RingSet, and the events that output to it. Internal to RingSet.
// W: measured facts, in the project's harness/RINGS_FACTS.md.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include "perfring/merge/timed.h"
#include "perfring/os/fd.h"
#include "perfring/output_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/ring.h"
#include "perfring/rings/round.h"
#include "perfring/rings_error.h"
#include "perfring/wait/wakeups.h"

namespace perfring::internal {

// The mapped event owns the ring and is the one to poll. Other events may output to the same ring
// (PERF_EVENT_IOC_SET_OUTPUT): a replacement, once its CPU has gone and come back (W40), and one
// that wakes nobody (W28). The kernel follows the wakeup settings of the event that outputs, so the
// event in the map entry decides (kernel/events/core.c: perf_output_sample() at v6.18).
class OutputRing {
 public:
  // Opens the event on `cpu`, maps its ring and enables it. With `can_be_quiet`, also opens an
  // event that wakes nobody, and the other one wakes for each record.
  static std::expected<OutputRing, RingsError> open(std::uint32_t cpu, const OutputOptions& options,
                                                    bool can_be_quiet);

  OutputRing(OutputRing&& other) noexcept;
  OutputRing& operator=(OutputRing&&) = delete;
  ~OutputRing();

  std::uint32_t cpu() const noexcept { return cpu_; }
  std::span<std::byte> mapping() const noexcept { return mapped_.mapping(); }
  // The descriptor to poll.
  int fd() const noexcept { return mapped_.fd(); }
  // As for OutputEvent.
  bool is_own() const noexcept { return mapped_.is_own(); }
  // Returns the event for the map entry.
  int event(Wakeups wakeups) const noexcept;

  // Returns how many outputs of its events found no room, including events from before a revival;
  // nullopt if the kernel does not count them.
  std::optional<std::uint64_t> lost() const noexcept;

  // Opens the events again, on the same ring. The records of the old events are still there.
  std::expected<void, RingsError> revive();

  bool is_online = true;

  // As for Ring::for_each_while().
  template <class F>
  bool for_each_while(F&& f) {
    return options_.timed ? timed_.for_each_while(f) : ring_.for_each_while(f);
  }

  void begin_round() { share_.begin(); }
  RoundShare<>& share() noexcept { return share_; }
  const RoundShare<>& share() const noexcept { return share_; }

 private:
  OutputRing(std::uint32_t cpu, const OutputOptions& options, OutputEvent mapped) noexcept;

  std::expected<os::Fd, RingsError> open_beside(const OutputOptions& options) const;
  std::expected<void, RingsError> add_quiet();
  // Replaces `old` with `event`. The outputs that `old` lost still count.
  void replace(os::Fd& old, os::Fd event) noexcept;

  std::uint32_t cpu_;
  OutputOptions options_;
  std::size_t page_size_;
  OutputEvent mapped_;
  os::Fd revived_;                                // in place of the mapped event, or none
  os::Fd quiet_;                                  // or none
  std::optional<std::uint64_t> lost_before_ = 0;  // by closed events
  Ring<> ring_;
  Ring<Timed<> > timed_;  // the same ring, if its records have a time
  RoundShare<> share_;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_OUTPUT_RING_H_
