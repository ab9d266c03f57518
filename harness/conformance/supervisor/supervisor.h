#ifndef HARNESS_CONFORMANCE_SUPERVISOR_SUPERVISOR_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_SUPERVISOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/conformance/subjects.h"
#include "harness/conformance/supervisor/activity.h"
#include "harness/conformance/supervisor/backend.h"
#include "harness/conformance/supervisor/play_listener.h"
#include "harness/conformance/supervisor/played_rings.h"
#include "harness/conformance/supervisor/program_calls.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/conformance/supervisor/traced_process.h"

namespace perfring::conformance {

// Plays a case in a program's rings, and judges the program.
//
//              first turn           last turn              it is due: SIGINT
//   Opening ---------------> Playing ---------> Draining ---------------------> Told
//      |                        |                  |                             |
//      |                        +------------------+  it is due: SIGINT          |  SIGINT again,
//      +--------------------------------------------> Told                       |  at last SIGKILL
//
//   any phase --> Killed: it is out of time, prints too much, or cannot have the case
//
// A program is due when it is asleep, or keeps waiting and has had all turns.
class Supervisor final : public PlayListener {
 public:
  Supervisor(const std::vector<std::string>& command, const Case& of, const ProcessLimits& limits,
             const Backend& backend, const Reader& reader)
      : case_{of},
        limits_{limits},
        reader_{reader},
        rings_{of, backend, reader},
        calls_{backend, *this, process_},
        process_{command,
                 limits,
                 {.call = [this](const Tracee& caller,
                                 const seccomp_notif& call) { return calls_.answer(caller, call); },
                  .maps_ring =
                      [this](const Tracee& caller, const MapCall& call) {
                        return calls_.perf.map_ring(caller, call);
                      },
                  .mapped = [this](std::uint64_t base) { calls_.perf.mapped(base); },
                  .faulted = [this](const Crash& fault) { on_fault(fault); },
                  .accessed = watched(backend),
                  .is_kernel_owned = backend.carries_out_calls()}} {}

  Cell run();

  const Case& played_case() const override { return case_; }
  void on_map(ProgramEvent& event) override { rings_.map(event); }
  void on_map_refused(const std::string& why) override { rings_.refuse(why); }
  void on_map_update(std::uint64_t key, ProgramEvent& event) override { rings_.enter(key, event); }
  void on_enabled(ProgramEvent& event) override {
    if (reader_.is_entered) rings_.enter(event.cpu, event);
  }
  void on_map_delete(std::uint64_t key) override;
  void on_wait() override {
    ++waits_;
    play_turn();
  }
  void on_not_emulated(const std::string& what) override {
    rings_.give_up(what + " is not emulated");
  }

 private:
  using Clock = Activity::Clock;
  enum class Phase : std::uint8_t { Opening, Playing, Draining, Told, Killed };

  // A long case would take hours.
  std::function<void(const PageAccess&)> watched(const Backend& backend) {
    is_watched_ = !backend.carries_out_calls() && !case_.is_long;
    if (!is_watched_) return {};
    return [this](const PageAccess& access) { rings_.access(access, cell_); };
  }
  void on_fault(const Crash& fault);
  void play_turn();
  bool is_due(Clock::time_point now);
  bool must_be_killed(Clock::time_point now) const;
  void end_when_due();
  bool ended_well();
  std::string describe_end() const;
  Cell judge();
  void add_accesses(Cell& cell) const;
  void add_to_detail(Cell& cell) const;

  const Case& case_;
  const ProcessLimits limits_;
  const Reader& reader_;
  PlayedRings rings_;
  Cell cell_;
  std::string out_of_bounds_;  // the first access
  Phase phase_ = Phase::Opening;
  bool is_watched_ = false;
  std::uint64_t waits_ = 0;
  std::uint64_t waits_without_turn_ = 0;
  int sigints_ = 0;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_check_ = begin_;
  Clock::time_point last_sigint_ = begin_;
  Activity activity_{begin_};
  ProgramCalls calls_;
  TracedProcess process_;  // last: its handlers use all of the above
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_SUPERVISOR_H_
