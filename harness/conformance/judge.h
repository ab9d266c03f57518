#ifndef HARNESS_CONFORMANCE_JUDGE_H_
#define HARNESS_CONFORMANCE_JUDGE_H_

// Judges how a consumer handled a case.

#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/cases.h"
#include "harness/conformance/producer.h"

namespace perfring::conformance {

// From good to bad. Of several, the worst counts.
enum class Outcome : std::uint8_t {
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
const char* to_string(Outcome outcome);
inline bool is_failure(Outcome outcome) {
  return outcome > Outcome::NotRun;
}

struct Cell {
  Outcome outcome = Outcome::Right;
  std::vector<Accept> accepted{};        // what made it acceptable
  std::string detail{};                  // the first thing that was wrong, or why it was not run
  bool unsupported = false;              // not run, and the subject cannot help it
  bool of_any_case = false;              // not run, by what the case has nothing to do with
  std::vector<std::string> backtrace{};  // of a crash: the functions that were called, last first

  void worsen(Outcome to, std::string why);
  void accept(const Case& of, Accept as, Outcome otherwise, const std::string& why);
};

// The resources that a consumer may use which is a program of its own.
struct ProcessLimits {
  double seconds = 20;                      // of a run
  unsigned cpu_seconds = 2;                 // after which it hangs
  std::uint64_t output = 16U << 20;         // bytes, after which it floods
  const std::atomic<bool>* stop = nullptr;  // ends the run early when it becomes true
};

// In a child, between fork() and exec(): it ends with its parent, dumps no core, dies of the
// signals that a program dies of, and has these limits. (`seconds` and `stop` are for its parent to
// watch.)
void confine(const ProcessLimits& limits);

// The CPU time that is compared with ProcessLimits::cpu_seconds.
double cpu_seconds_of(const rusage& used);

// No case can be run: the program cannot be started, or this system does not let it be supervised.
// what() says what was asked for, what the system said, and what to change.
struct CannotRun : std::runtime_error {
  using runtime_error::runtime_error;
};

// Judges how such a program ended, by its exit code as a shell reports it (128 plus the signal's
// number), and what it has printed. Returns whether it ended as it should.
bool judge_end(int exit_code, std::string_view out, std::string_view err,
               const ProcessLimits& limits, Cell& cell);

// data_tail and data_head around a turn of the consumer's. Positions are compared modulo 2^32, as a
// 32-bit kernel has them.
struct Tails {
  std::uint64_t before = 0;
  std::uint64_t head = 0;
  std::uint64_t after = 0;

  std::uint32_t moved() const { return static_cast<std::uint32_t>(after - before); }
  std::uint32_t published() const { return static_cast<std::uint32_t>(head - before); }
};

// Compares the events that a consumer delivered with the expected ones, in order. A seen event of
// kind Bad is an error that it reported.
void judge_events(const Case& of, std::span<const Event> expected, std::span<const Event> seen,
                  Cell& cell);
// The same of one turn of several: `so_far` is what the turns before it were to bring, and becomes
// what this one is to bring as well. An error that comes once more is judged as in one stream.
void judge_turn(const Case& of, std::vector<Event>& so_far, std::span<const Event> expected,
                std::span<const Event> seen, Cell& cell);
// The same of several rings, whose events come in any order among each other.
void judge_streams(const Case& of, std::span<const std::span<const Event>> expected,
                   std::span<const Event> seen, Cell& cell);
// During the turn: the tail is nowhere beyond the head.
void judge_place(const Tails& tails, Cell& cell);
// At its end: it is at the head.
void judge_tail(const Case& of, const Tails& tails, Cell& cell);

// "data_tail went from 0x0 to 0x20, data_head is 0x40".
std::string to_text(const Tails& tails);
// "sample of 20 bytes: 01 02...", "LOST 3", "error".
std::string to_text(const Event& event);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_JUDGE_H_
