#ifndef HARNESS_CONFORMANCE_SUPERVISOR_ACTIVITY_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_ACTIVITY_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "harness/conformance/supervisor/traced_process.h"

namespace perfring::conformance {

// How busy a program is, as far as one can see from outside. It is quiet if, since the last check,
// it made no progress and used little CPU time, and now neither runs nor waits for a CPU.
class Activity {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Activity(Clock::time_point now) : quiet_since_{now}, same_since_{now} {}

  // Checks the program, whose `progress` are numbers that change whenever it makes some, and which
  // has so far waited `waits` times. Returns whether it is quiet.
  bool check(Clock::time_point now, const TracedProcess& process,
             std::vector<std::uint64_t> progress, std::uint64_t waits);
  // The program has something to do from now on: it is not quiet.
  void interrupt_quiet(Clock::time_point now, std::uint64_t waits);

  // How long it has been quiet, and how long without progress.
  Clock::duration quiet_for(Clock::time_point now) const { return now - quiet_since_; }
  Clock::duration same_for(Clock::time_point now) const { return now - same_since_; }
  // Whether it has been quiet for a while, all of it in one wait.
  bool sleeps(Clock::time_point now, std::uint64_t waits) const {
    return quiet_since_ != now && waits == waits_before_quiet_;
  }

 private:
  Clock::time_point quiet_since_;
  Clock::time_point same_since_;
  std::uint64_t waits_before_quiet_ = 0;
  std::vector<std::uint64_t> progress_;
  std::int64_t cpu_ns_ = 0;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_ACTIVITY_H_
