#ifndef HARNESS_CONFORMANCE_CASES_JUDGE_H_
#define HARNESS_CONFORMANCE_CASES_JUDGE_H_

// Judges how a consumer handled a case.

#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"

namespace perfring::conformance {

// From good to bad. The worst of several outcomes counts.
enum class CaseOutcome : std::uint8_t {
  Right,
  Acceptable,
  NotRun,
  Loses,
  Garbage,
  Floods,
  Hangs,
  Crashes,
  OutOfBounds,
};
const char* to_string(CaseOutcome outcome);
inline bool is_failure(CaseOutcome outcome) {
  return outcome > CaseOutcome::NotRun;
}

struct Cell {
  CaseOutcome outcome = CaseOutcome::Right;
  std::vector<Accept> accepted{};        // the reasons for Acceptable
  std::string detail{};                  // the first thing that was wrong, or why it was not run
  bool unsupported = false;              // not run for a reason that the subject cannot change
  bool of_any_case = false;              // not run for a reason unrelated to the case
  bool is_watched = false;               // its accesses to the control page were
  std::vector<std::string> backtrace{};  // of a crash: the called functions, innermost first

  void worsen(CaseOutcome to, std::string why);
  void accept(const Case& of, Accept as, CaseOutcome otherwise, const std::string& why);
};

// Limits for a consumer that is a program of its own.
struct ProcessLimits {
  double seconds = 20;                      // of a run
  unsigned cpu_seconds = 2;                 // more is a hang
  std::uint64_t output = 16U << 20;         // bytes; more is a flood
  const std::atomic<bool>* stop = nullptr;  // ends the run early when it becomes true
};

// Runs in a child, between fork() and exec(). The child will die with its parent, dump no core, die
// of the usual signals, and have these limits. The parent must watch `seconds` and `stop`.
void confine(const ProcessLimits& limits);

// Returns the CPU time to compare with ProcessLimits::cpu_seconds.
double cpu_seconds_of(const rusage& used);

// No case can be run: the program cannot be started, or this system does not let it be supervised.
// what() names the request, the system's answer, and a remedy.
struct CannotRun : std::runtime_error {
  using runtime_error::runtime_error;
};

// Judges how such a program ended, by its exit code as a shell reports it (128 plus the signal's
// number), and its output. Returns true if it ended well.
bool judge_end(int exit_code, std::string_view out, std::string_view err,
               const ProcessLimits& limits, Cell& cell);

// data_tail and data_head around a consumer's turn. Positions are compared modulo 2^32, because a
// 32-bit kernel's have 32 bits.
struct Tails {
  std::uint64_t before = 0;
  std::uint64_t head = 0;
  std::uint64_t after = 0;

  std::uint32_t moved() const { return static_cast<std::uint32_t>(after - before); }
  std::uint32_t published() const { return static_cast<std::uint32_t>(head - before); }
};

// Compares the delivered events with the expected ones, in order. A seen event of kind Bad is an
// error that the consumer reported.
void judge_events(const Case& of, std::span<const Event> expected, std::span<const Event> delivered,
                  Cell& cell);
// Judges one of several turns. `so_far` has the events that the earlier turns had to deliver; this
// turn's are appended. A repeated error is judged as in one stream.
void judge_turn(const Case& of, std::vector<Event>& so_far, std::span<const Event> expected,
                std::span<const Event> delivered, Cell& cell);
// Judges several rings. Their events may come in any order relative to each other.
void judge_streams(const Case& of, std::span<const std::span<const Event>> expected,
                   std::span<const Event> delivered, Cell& cell);
// Returns the number of the first delivered event that is not the expected one of that number, or
// the number of delivered events.
std::size_t first_difference(std::span<const Event> expected, std::span<const Event> delivered);
// Whether the delivered event is one of the expected ones.
bool is_among(std::span<const Event> expected, const Event& delivered);
// During a turn: the tail must not be beyond the head.
void judge_place(const Tails& tails, Cell& cell);
// At the end of a turn: the tail must be at the head.
void judge_tail(const Case& of, const Tails& tails, Cell& cell);

// "data_tail went from 0x0 to 0x20, data_head is 0x40".
std::string to_text(const Tails& tails);
// "sample of 20 bytes: 01 02...", "LOST 3", "error".
std::string to_text(const Event& event);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_CASES_JUDGE_H_
