#ifndef HARNESS_FAULTS_CATALOGUE_H_
#define HARNESS_FAULTS_CATALOGUE_H_

// Every fault that any harness plants: its name, what is wrong, and what each harness must make of
// it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "harness/oracle/invariant.h"

namespace perfring::faults {

// A kernel's; a consumer's accesses to memory, and their order; the rest of a consumer.
enum class Kind : std::uint8_t { Kernel, Memory, Consumer };

// Scripts: harness/rig. ThreadSanitizer: harness/stress, built with it.
enum class Harness : std::uint8_t { Scripts, Simulator, Stress, ThreadSanitizer, Model };
inline constexpr std::size_t kHarnesses = 5;

// Why a harness cannot see a fault.
enum class Reason : std::uint8_t {
  InOrder,
  ThisProcessor,
  NoMatterOfOrder,
  Suffices,
  NobodySleeps,
  FlagUnread,
  ModelOnly,
  WaitLoop,
  ShortRecords,
  HostileRings,
  RaceByChance,
  EarlyWakeup,
};
const char* to_string(Reason reason);
const char* explanation(Reason reason);
std::span<const Reason> reasons();

// Found as the violation of an invariant; of which one depends on how threads are scheduled.
struct AnyInvariant {};
struct DataRace {};
using Expected = std::variant<oracle::Invariant, AnyInvariant, DataRace, Reason>;

struct Fault {
  const char* name;
  const char* what;
  Kind kind;
  std::array<Expected, kHarnesses> expected;  // by Harness
  const char* property = "";                  // a test of proptests that must find it

  const Expected& in(Harness harness) const { return expected[static_cast<std::size_t>(harness)]; }
};

std::span<const Fault> catalogue();
// nullptr if no fault has this name.
const Fault* find_fault(std::string_view name);
// The fault's description. Precondition: the catalogue has this name.
const char* what(std::string_view name);

const char* to_string(Kind kind);
const char* to_string(Harness harness);
std::span<const Harness> harnesses();
bool is_found(const Expected& expected);
// "intact", "any invariant", "data race", "not seen: in order".
std::string in_words(const Expected& expected);

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_CATALOGUE_H_
