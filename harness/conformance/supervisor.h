#ifndef HARNESS_CONFORMANCE_SUPERVISOR_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/conformance/emulated_calls.h"
#include "harness/conformance/judge.h"
#include "harness/conformance/producer.h"
#include "harness/conformance/subjects.h"
#include "harness/conformance/traced_process.h"

namespace perfring::conformance {

// The rings of a program, and among them those in which the case is played: of each CPU, the one
// that the program has entered in its map.
class PlayedRings {
 public:
  // With an emitter the producer is the machine's own kernel.
  PlayedRings(const Case& of, live::Emitter* emitter, const Reader& reader)
      : case_{of}, emitter_{emitter}, reader_{reader}, echo_{reader.echo} {}

  // The program maps an event's ring, enters an event in its map, takes one out of it. Once the
  // last of the rings is there, what a producer writes while a program registers is written.
  void map(Opened& event);
  void enter(std::uint64_t key, Opened& event);
  void take_out(std::uint64_t key);
  void refuse(const std::string& mapping) { refused_ = mapping; }
  // Reports the first reason only: how far the program gets afterwards is chance.
  void give_up(const std::string& why) {
    if (!impossible_.is_of_any_case) impossible_ = {why, true, true};
  }

  // The producer's turn. Returns whether there was one to have.
  bool turn();
  bool has_begun() const { return turns_ != 0; }
  bool is_refused() const { return producer_ != nullptr && producer_->is_refused(); }
  bool is_over() const { return producer_ != nullptr && producer_->is_over(); }

  // The reason why the case was not played to its end, if it was not.
  struct Obstacle {
    std::string why{};
    bool is_unsupported = false;  // the program cannot help it
    bool is_of_any_case = false;  // the case has nothing to do with it
  };
  std::optional<Obstacle> obstacle() const;
  bool is_impossible() const { return !impossible_.why.empty(); }

  // Grows, or has other values, whenever the program has got further.
  std::vector<std::uint64_t> progress() const;
  bool are_read() const;
  void judge_places(Cell& cell) const;
  // The program has waited, and will get SIGINT: it must have read what was announced to it.
  void judge_unread(Cell& cell, bool sleeps) const;
  void judge_tails(Cell& cell) const;
  std::vector<std::span<const Event>> expected() const;
  // Relative to the ring that the address is in, or near; empty if it is at none.
  std::string place_of(std::uint64_t address) const;
  // "; data_tail went from 0x0 to 0x20, data_head is 0x40" of each.
  std::string positions() const;

 private:
  struct Played {
    std::size_t cpu = 0;
    Opened* event = nullptr;
    Tails tails{};
    Tails now() const { return {tails.before, event->page().data_head, event->page().data_tail}; }
  };

  std::string why_impossible(const Opened& event) const;
  script::Settings settings_of(const Opened& event, bool plays) const;
  Opened* entered_on(std::size_t cpu) const;
  bool is_announced(const Opened& event) const;
  std::string why_not_entered() const;
  void begin();

  const Case& case_;
  live::Emitter* const emitter_;
  const Reader& reader_;
  const Echo echo_;
  std::vector<Opened*> mapped_;
  std::map<std::uint64_t, Opened*> entries_;  // of the program's map
  std::vector<Played> played_;                // once all of them are there, and
  std::unique_ptr<CaseProducer> producer_;
  Obstacle impossible_;          // why the case cannot be played in those rings
  std::string misuse_;           // what the program did to its map meanwhile
  std::string refused_;          // why an mmap of a ring was refused
  bool has_registered_ = false;  // the case had something written while the program registered
  std::uint64_t turns_ = 0;
};

// Plays a case in the rings of a program, and judges it.
class Supervisor final : public Playing {
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
                  .is_kernels_own = emitter != nullptr}} {}

  Cell run();

  const Case& played() const override { return case_; }
  void on_map(Opened& event) override { rings_.map(event); }
  void on_map_refused(const std::string& why) override { rings_.refuse(why); }
  void on_map_update(std::uint64_t key, Opened& event) override { rings_.enter(key, event); }
  void on_enabled(Opened& event) override {
    if (reader_.is_entered) rings_.enter(event.cpu, event);
  }
  void on_map_delete(std::uint64_t key) override;
  void on_wait() override {
    ++waits_;
    producers_turn();
  }
  void on_not_emulated(const std::string& what) override {
    rings_.give_up(what + " is not emulated");
  }

 private:
  using Clock = std::chrono::steady_clock;

  void on_fault(const Crash& fault);
  void producers_turn();
  void quiet_from(Clock::time_point now);
  bool is_quiet();
  bool is_due(Clock::time_point now);
  void end_when_due();
  bool ended_well();
  std::string last_words() const;
  Cell judge();
  void add_to_detail(Cell& cell) const;

  const Case& case_;
  const ProcessLimits limits_;
  const Reader& reader_;
  PlayedRings rings_;
  Cell cell_;
  std::string out_of_bounds_;  // where it was first
  std::uint64_t waits_ = 0;
  std::uint64_t waits_before_quiet_ = 0;
  std::uint64_t waits_after_ = 0;  // the last turn
  int sigints_ = 0;
  bool killed_ = false;  // for want of time
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point looked_ = begin_;
  Clock::time_point quiet_since_ = begin_;
  Clock::time_point same_since_ = begin_;  // since it got further
  std::vector<std::uint64_t> progress_;
  std::int64_t cpu_ = 0;
  EmulatedCalls calls_;
  TracedProcess process_;  // last: its handlers use all of the above
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_H_
