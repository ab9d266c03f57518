#ifndef HARNESS_FAULTS_FAULT_CATALOGUE_H_
#define HARNESS_FAULTS_FAULT_CATALOGUE_H_

// Every fault that any harness plants: its name, its description, and the expected outcome in each
// harness. The catalogue also has the variants, which are not faults: all invariants hold with
// them, which shows that lib and the kernel are stricter than necessary.

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

// The place of a fault: the kernel; a consumer's accesses to memory, and their order; the rest of a
// consumer. A variant is not a fault.
enum class FaultKind : std::uint8_t { Kernel, Memory, Consumer, Variant };

// Scripts: harness/rig. ThreadSanitizer: harness/stress, built with ThreadSanitizer. Differential:
// the recorded traces of harness/differential.
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

// Any one of several invariants: the schedule of the threads decides which one is violated first.
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
// The first difference from the recorded kernel, by its name in differential/reference_kernel.h.
struct Differs {
  const char* in;
};
// The outcome of a variant: it violates nothing.
struct Holds {};
using Expected = std::variant<oracle::Invariant, OneOf, DataRace, Differs, Holds, Reason>;

// A test of proptests that must find the fault, as a violation of the invariant that the test
// names; or why no property finds it.
using Property = std::variant<const char*, Reason>;
// The test that plants every fault that some script shows (proptests/drains_test.cc). It must find
// a violation of the invariant for Harness::Scripts, which must be a single one.
inline constexpr const char* kAnyScript = "AnyScriptTest.FindsTheFault";

struct Fault {
  const char* name;
  const char* what;
  FaultKind kind;
  std::array<Expected, kHarnesses> expected;  // by Harness
  Property property;

  const Expected& in(Harness harness) const { return expected[static_cast<std::size_t>(harness)]; }
};

std::span<const Fault> catalogue();
// The parts of the catalogue: kernel_table.cc; consumer_table.cc, which also has the memory faults
// and the variants; fault_catalogue.cc. A row of `expected` has scripts, simulator, stress,
// ThreadSanitizer, model checker and diff, in this order.
std::span<const Fault> faults_of_a_kernel();
std::span<const Fault> faults_of_a_consumer();
std::span<const Fault> faults_of_many_rings();
inline constexpr DataRace kRace;
inline constexpr Holds kHolds;

// Returns nullptr if no fault has this name.
const Fault* find_fault(std::string_view name);
// Returns the fault's description. Precondition: the catalogue has this name.
const char* what(std::string_view name);

const char* to_string(FaultKind kind);
const char* to_string(Harness harness);
std::span<const Harness> harnesses();
bool is_found(const Expected& expected);
// Whether a harness may leave the fault out for this reason.
bool is_not_planted(Reason reason);
// Returns the outcome in the fuzz target hostile_ring, on its seeds (fuzz/hostile_drain_test.cc).
// This target has rings of arbitrary bytes, and no kernel. The target kernel_script runs scripts,
// like Harness::Scripts.
Expected by_fuzzing(const Fault& fault);
// The worst outcome of a consumer with the fault in the cases of harness/conformance, by its name
// in judge.h; or why no case shows the fault (conformance_test.cc).
using Conforms = std::variant<const char*, Reason>;
Conforms by_conformance(const Fault& fault);
// Returns text: "intact", "no_loss or intact", "data race", "data_head", "holds",
// "undetectable: in order".
std::string in_words(const Expected& expected);
// Returns the property that finds the fault: "DeliveryTest.FindsAKernelThatIgnoresTail"; or "(in
// order)".
std::string property_of(const Fault& fault);

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_FAULT_CATALOGUE_H_
