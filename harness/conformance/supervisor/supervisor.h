#ifndef HARNESS_CONFORMANCE_SUPERVISOR_SUPERVISOR_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_SUPERVISOR_H_

#include <linux/seccomp.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/conformance/subjects.h"
#include "harness/conformance/supervisor/emulated_calls.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/live/emitter.h"
#include "harness/script/script.h"

namespace perfring::conformance {

// A program's rings. The case is played in one of each CPU: the ring that the program has entered
// in its map.
class PlayedRings {
 public:
  // With an emitter, the machine's own kernel is the producer.
  PlayedRings(const Case& of, live::Emitter* emitter, const Reader& reader)
      : case_{of}, emitter_{emitter}, reader_{reader}, echo_{reader.echo} {}

  // The program maps an event's ring, enters an event in its map, or takes one out of it. Once the
  // last needed ring is there, the producer writes the records of the registration phase.
  void map(ProgramEvent& event);
  void enter(std::uint64_t key, ProgramEvent& event);
  void take_out(std::uint64_t key);
  void refuse(const std::string& mapping) { refused_ = mapping; }
  // Keeps the first reason only: how far the program gets afterwards is chance.
  void give_up(const std::string& why) {
    if (!impossible_.is_of_any_case) impossible_ = {why, true, true};
  }

  // Plays the producer's next turn. Returns false if none is left.
  bool play_turn();
  bool has_begun() const { return turns_ != 0; }
  bool is_refused() const { return producer_ != nullptr && producer_->is_refused(); }
  bool is_over() const { return producer_ != nullptr && producer_->is_over(); }

  // Why the case was not played to its end.
  struct Obstacle {
    std::string why{};
    bool is_unsupported = false;  // the program cannot help it
    bool is_of_any_case = false;  // unrelated to the case
  };
  std::optional<Obstacle> obstacle() const;
  bool is_impossible() const { return !impossible_.why.empty(); }

  // Returns numbers that change whenever the program makes progress.
  std::vector<std::uint64_t> progress() const;
  bool are_all_read() const;
  void judge_places(Cell& cell) const;
  // Call it before SIGINT: a program that has waited must have read everything announced to it.
  void judge_unread(Cell& cell, bool sleeps) const;
  void judge_tails(Cell& cell) const;
  std::vector<std::span<const Event>> expected() const;
  // Returns the address relative to the ring that it is in or near, or "".
  std::string place_of(std::uint64_t address) const;
  // Returns "; data_tail went from 0x0 to 0x20, data_head is 0x40" for each ring.
  std::string positions() const;

 private:
  struct PlayedRing {
    std::size_t cpu = 0;
    ProgramEvent* event = nullptr;
    Tails tails{};
    Tails now() const { return {tails.before, event->page().data_head, event->page().data_tail}; }
  };

  std::string why_impossible(const ProgramEvent& event) const;
  script::Settings settings_of(const ProgramEvent& event, bool plays) const;
  ProgramEvent* entered_on(std::size_t cpu) const;
  bool is_announced(const ProgramEvent& event) const;
  std::string why_not_entered() const;
  void begin();

  const Case& case_;
  live::Emitter* const emitter_;
  const Reader& reader_;
  const Echo echo_;
  std::vector<ProgramEvent*> mapped_;
  std::map<std::uint64_t, ProgramEvent*> entries_;  // of the program's map
  std::vector<PlayedRing> played_;                  // set once all rings are there, like producer_
  std::unique_ptr<CaseProducer> producer_;
  Obstacle impossible_;          // why the case cannot be played in these rings
  std::string misuse_;           // how the program changed its map during the case
  std::string refused_;          // why an mmap of a ring was refused
  bool has_registered_ = false;  // the case wrote records while the program registered
  std::uint64_t turns_ = 0;
};

// Plays a case in a program's rings, and judges the program.
class Supervisor final : public PlayListener {
 public:
  Supervisor(const std::vector<std::string>& command, const Case& of, const ProcessLimits& limits,
             live::Emitter* emitter, const Reader& reader)
      : case_{of},
        limits_{limits},
        reader_{reader},
        rings_{of, emitter, reader},
        calls_{process_, *this, emitter, reader.loads_programs},
        process_{command,
                 limits,
                 {.call = [this](const seccomp_notif& call) { return calls_.answer(call); },
                  .maps_ring = [this](pid_t thread,
                                      const MapCall& call) { return calls_.map(thread, call); },
                  .mapped = [this](std::uint64_t base) { calls_.mapped(base); },
                  .faulted = [this](const Crash& fault) { on_fault(fault); },
                  .is_kernel_owned = emitter != nullptr}} {}

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
  using Clock = std::chrono::steady_clock;

  void on_fault(const Crash& fault);
  void play_turn();
  void set_quiet_since(Clock::time_point now);
  bool is_quiet();
  bool is_due(Clock::time_point now);
  void end_when_due();
  bool ended_well();
  std::string describe_end() const;
  Cell judge();
  void add_to_detail(Cell& cell) const;

  const Case& case_;
  const ProcessLimits limits_;
  const Reader& reader_;
  PlayedRings rings_;
  Cell cell_;
  std::string out_of_bounds_;  // the first access
  std::uint64_t waits_ = 0;
  std::uint64_t waits_before_quiet_ = 0;
  std::uint64_t waits_after_ = 0;  // waits after the last turn
  int sigints_ = 0;
  bool killed_ = false;  // by the supervisor
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_check_ = begin_;
  Clock::time_point quiet_since_ = begin_;
  Clock::time_point same_since_ = begin_;  // since its last progress
  std::vector<std::uint64_t> progress_;
  std::int64_t cpu_ = 0;
  EmulatedCalls calls_;
  TracedProcess process_;  // last: its handlers use all of the above
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_SUPERVISOR_H_
