#ifndef HARNESS_FAULTS_CATALOGUE_H_
#define HARNESS_FAULTS_CATALOGUE_H_

// Every fault that any harness plants: its name, what is wrong, and what each harness must make of
// it. Beside them the variants, which are not wrong: all invariants hold with them, which shows
// that lib and the kernel are stricter than need be.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "harness/oracle/invariant.h"

namespace perfring::faults {

// A fault of the kernel; of a consumer's accesses to memory, and their order; of the rest of a
// consumer. A variant is not a fault.
enum class Kind : std::uint8_t { Kernel, Memory, Consumer, Variant };

// Scripts: harness/rig. ThreadSanitizer: harness/stress, built with it. Differential: the recorded
// traces of harness/differential.
enum class Harness : std::uint8_t {
  Scripts,
  Simulator,
  Stress,
  ThreadSanitizer,
  Model,
  Differential,
};
inline constexpr std::size_t kHarnesses = 6;

// Why a harness cannot see a fault.
enum class Reason : std::uint8_t {
  InOrder,
  ThisProcessor,
  Suffices,
  NobodySleeps,
  FlagUnread,
  FenceForFence,
  OwnOfTheModel,
  KernelsDoSo,
  Unwatched,
  AroundMemory,
  WaitLoop,
  ShortRecords,
  HostileRings,
  RaceByChance,
  EarlyWakeup,
  OneRing,
  NoKernel,
  NoConsumer,
  StepByStep,
  Quiet,
  WholeDrains,
  Since52,
};
const char* to_string(Reason reason);
const char* explanation(Reason reason);
std::span<const Reason> reasons();

// One of these: the schedule of the threads decides which is violated first.
class OneOf {
 public:
  constexpr explicit OneOf(std::initializer_list<oracle::Invariant> each) {
    for (const oracle::Invariant one : each) bits_ |= bit(one);
  }
  constexpr bool has(oracle::Invariant one) const { return (bits_ & bit(one)) != 0; }

 private:
  static constexpr std::uint32_t bit(oracle::Invariant one) {
    return std::uint32_t{1} << static_cast<unsigned>(one);
  }
  std::uint32_t bits_ = 0;
};
struct DataRace {};
// The first difference from the recorded kernel, by its name there (differential/reference.h).
struct Differs {
  const char* in;
};
// A variant: it violates nothing.
struct Holds {};
using Expected = std::variant<oracle::Invariant, OneOf, DataRace, Differs, Holds, Reason>;

// A test of proptests that must find it, as a violation of the invariant that it names; or why no
// property does.
using Property = std::variant<const char*, Reason>;
// The test that plants every fault which some script shows (proptests/drains_test.cc). What it
// finds is a violation of the invariant that Harness::Scripts has, which is one alone.
inline constexpr const char* kAnyScript = "AnyScriptTest.FindsTheFault";

struct Fault {
  const char* name;
  const char* what;
  Kind kind;
  std::array<Expected, kHarnesses> expected;  // by Harness
  Property property;

  const Expected& in(Harness harness) const { return expected[static_cast<std::size_t>(harness)]; }
};

std::span<const Fault> catalogue();
// Its parts: kernel_table.cc; consumer_table.cc, of a memory, too, and the variants. In a row of
// `expected`: scripts, simulator, stress, ThreadSanitizer, model checker, diff.
std::span<const Fault> faults_of_a_kernel();
std::span<const Fault> faults_of_a_consumer();
std::span<const Fault> faults_of_many_rings();
inline constexpr DataRace kRace;
inline constexpr Holds kHolds;

// nullptr if no fault has this name.
const Fault* find_fault(std::string_view name);
// The fault's description. Precondition: the catalogue has this name.
const char* what(std::string_view name);

const char* to_string(Kind kind);
const char* to_string(Harness harness);
std::span<const Harness> harnesses();
bool is_found(const Expected& expected);
// Whether a harness that gives this reason may leave the fault out.
bool is_not_planted(Reason reason);
// The outcome in the fuzz target hostile_ring, on its seeds (fuzz/hostile_drain_test.cc): it has
// rings of any bytes, and no kernel. The target kernel_script runs scripts, as Harness::Scripts.
Expected by_fuzzing(const Fault& fault);
// The outcome of a consumer with the fault in the cases of harness/conformance: the worst, by its
// name there (judge.h), or why none shows it (conformance_test.cc).
using Conforms = std::variant<const char*, Reason>;
Conforms by_conformance(const Fault& fault);
// "intact", "no_loss or intact", "data race", "data_head", "holds", "not seen: in order".
std::string in_words(const Expected& expected);
// The property that finds it: "DeliveryTest.FindsAKernelThatIgnoresTail", "(in order)".
std::string property_of(const Fault& fault);

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_CATALOGUE_H_
