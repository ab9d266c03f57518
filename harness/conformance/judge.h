#ifndef HARNESS_CONFORMANCE_JUDGE_H_
#define HARNESS_CONFORMANCE_JUDGE_H_

// What a consumer made of a case, judged.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
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
  std::vector<Accept> accepted{};  // what made it acceptable
  std::string detail{};            // the first thing that was wrong, or why it was not run
  bool unsupported = false;        // not run, as the subject says of itself

  void worsen(Outcome to, std::string why);
  void accept(const Case& of, Accept as, Outcome otherwise, const std::string& why);
};

// data_tail and data_head around a turn of the consumer's.
struct Tails {
  std::uint64_t before = 0;
  std::uint64_t head = 0;
  std::uint64_t after = 0;
};

// Compares what a consumer delivered with what it had to, in order. A seen event of kind Bad is an
// error that it reported.
void judge_events(const Case& of, std::span<const Event> expected, std::span<const Event> seen,
                  Cell& cell);
// Positions are compared modulo 2^32, as a 32-bit kernel has them.
void judge_tail(const Case& of, const Tails& tails, Cell& cell);

// "sample of 20 bytes: 01 02...", "LOST 3", "error".
std::string to_text(const Event& event);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_JUDGE_H_
