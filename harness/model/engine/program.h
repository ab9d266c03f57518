#ifndef HARNESS_MODEL_ENGINE_PROGRAM_H_
#define HARNESS_MODEL_ENGINE_PROGRAM_H_

// A program to check: threads of ordinary C++ that share memory through Vars. Everything else that
// a thread reads must be its own or constant, because its code is run many times.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/model/engine/step.h"
#include "harness/model/engine/usage_error.h"
#include "harness/oracle/invariant.h"

namespace perfring::model {

inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;
inline constexpr auto kAcquireRelease = std::memory_order_acq_rel;

// A location, for the threads of a program that is being checked. It accepts the orders of
// std::atomic except std::memory_order_seq_cst, which throws a UsageError.
class Var {
 public:
  explicit Var(std::uint16_t location = 0) : location_{location} {}

  std::uint64_t load(std::memory_order order, Where where = Where::here()) const;
  void store(std::uint64_t value, std::memory_order order, Where where = Where::here()) const;
  std::uint64_t fetch_add(std::uint64_t operand, std::memory_order order,
                          Where where = Where::here()) const;
  std::uint64_t exchange(std::uint64_t value, std::memory_order order,
                         Where where = Where::here()) const;
  // Returns the value read.
  std::uint64_t compare_exchange(std::uint64_t expected, std::uint64_t desired,
                                 std::memory_order success, std::memory_order failure,
                                 Where where = Where::here()) const;
  // Non-atomic accesses.
  std::uint64_t read(Where where = Where::here()) const;
  void write(std::uint64_t value, Where where = Where::here()) const;

  std::uint16_t location() const { return location_; }

 private:
  std::uint16_t location_;
};

void fence(std::memory_order order, Where where = Where::here());
// The kernel's smp_wmb(): orders the thread's earlier stores before its later ones, and nothing
// else.
void fence_store_store(Where where = Where::here());
// Returns the number of the thread's last read, counted from 1.
std::uint32_t last_read();
// A branch on read number `read`: the machine makes no later store of the thread visible before
// this read. RC11 ignores it. The only other dependency is data_dependency().
void control_dependency(std::uint32_t read, Where where = Where::here());
// The value of the thread's next store is computed from read number `read`. RC11 ignores it.
void data_dependency(std::uint32_t read);
// Checks an invariant of the program.
void check(bool holds, const std::string& message, Where where = Where::here());

// The message of a check, with its invariant's name: "intact: a word differs from what was written
// there".
struct NamedCheck {
  consteval NamedCheck(oracle::Invariant invariant, std::string_view what) {
    char* at = text;
    for (const std::string_view part : {std::string_view{to_string(invariant)}, {": "}, what}) {
      for (const char each : part) *at++ = each;
    }
  }
  constexpr operator const char*() const { return text; }
  char text[80]{};
};
inline void check(bool holds, const NamedCheck& named, Where where = Where::here()) {
  check(holds, std::string{named.text}, where);
}
// Ends the thread if `holds` is false; the execution then counts as blocked. Use it to bound a loop
// that waits. Violations by other threads, and earlier ones, still count.
void assume(bool holds, Where where = Where::here());
// From here on the thread depends only on these values and its place in the source.
void checkpoint(std::span<const std::uint64_t> values, Where where = Where::here());
inline void checkpoint(std::initializer_list<std::uint64_t> values, Where where = Where::here()) {
  checkpoint(std::span{values.begin(), values.size()}, where);
}

struct Location {
  std::string name;
  std::uint64_t initial = 0;
};

struct Program {
  static constexpr std::size_t kThreadsMax = 4;

  std::string name;
  std::vector<Location> locations;
  std::vector<std::function<void()>> threads;
  std::vector<std::string> thread_names;  // for reports; a thread without a name is numbered
  std::function<void()> finally;          // runs after all threads have ended

  Var var(std::string var_name, std::uint64_t initial = 0) {
    locations.push_back({std::move(var_name), initial});
    return Var{static_cast<std::uint16_t>(locations.size() - 1)};
  }
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_PROGRAM_H_
