#ifndef HARNESS_CONFORMANCE_SUPERVISOR_PLAYED_RINGS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_PLAYED_RINGS_H_

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
#include "harness/conformance/supervisor/backend.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/conformance/supervisor/ring_accesses.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/script/script.h"

namespace perfring::conformance {

// A program's rings. The case is played in one of each CPU: the ring that the program has entered
// in its map.
class PlayedRings {
 public:
  PlayedRings(const Case& of, const Backend& backend, const Reader& reader)
      : case_{of}, backend_{backend}, reader_{reader}, echo_{reader.echo} {}

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
  // Returns which event is entered at another CPU's key, if all rings are mapped and each of their
  // events is in the map. A real kernel writes nothing to such an event, and says nothing. "" if
  // none is.
  std::string misplaced() const;
  bool is_impossible() const { return !impossible_.why.empty(); }

  // Returns numbers that change whenever the program makes progress.
  std::vector<std::uint64_t> progress() const;
  bool are_all_read() const;
  void judge_places(Cell& cell) const;
  // Call it before SIGINT: a program that has waited must have read everything announced to it.
  void judge_unread(Cell& cell, bool sleeps) const;
  void judge_tails(Cell& cell) const;
  std::vector<std::span<const Event>> expected() const;
  // The program has accessed, or is about to access, a ring's control page.
  void access(const PageAccess& access, Cell& cell);
  // Returns what the accesses tell about the first event that was not delivered intact, or "".
  std::string explain(std::span<const Event> delivered, bool died) const;
  // Returns the address relative to the ring that it is in or near, or "".
  std::string place_of(std::uint64_t address) const;
  // Returns "; data_tail went from 0x0 to 0x20, data_head is 0x40" for each ring.
  std::string positions() const;

 private:
  struct PlayedRing {
    std::size_t cpu = 0;
    ProgramEvent* event = nullptr;
    Tails tails{};
    Tails due{};  // before a store that is due
    RingAccesses accesses{};
    Tails now() const { return {tails.before, event->page().data_head, event->page().data_tail}; }
  };

  std::string why_impossible(const ProgramEvent& event) const;
  script::Settings settings_of(const ProgramEvent& event, bool plays) const;
  ProgramEvent* entered_on(std::size_t cpu) const;
  bool is_announced(const ProgramEvent& event) const;
  std::string why_not_entered() const;
  PlayedRing* ring_at(std::uint64_t base);
  void begin();

  const Case& case_;
  const Backend& backend_;
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

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_PLAYED_RINGS_H_
