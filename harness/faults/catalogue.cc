#include "harness/faults/catalogue.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/faults/table.h"

namespace perfring::faults {
namespace {

using oracle::Invariant;

constexpr std::array kHarnessList{Harness::Scripts, Harness::Simulator, Harness::Stress,
                                  Harness::ThreadSanitizer, Harness::Model};
static_assert(kHarnessList.size() == kHarnesses);

struct Explained {
  Reason reason;
  const char* name;
  const char* explanation;
};
constexpr std::array kReasons{
    Explained{Reason::InOrder, "in order",
              "one thread plays kernel and consumer, and sees all stores at once and in program "
              "order"},
    Explained{Reason::ThisProcessor, "this processor",
              "x86 keeps this order without being asked, and so does the compiler; ThreadSanitizer "
              "and the model checker see that nothing asks"},
    Explained{Reason::Suffices, "suffices",
              "no invariant depends on it: the model checker proves that all hold without"},
    Explained{Reason::NobodySleeps, "nobody sleeps",
              "nobody waits to be woken; where there is a poll, it looks at the flag, which is "
              "right"},
    Explained{Reason::FlagUnread, "flag unread",
              "consumers sleep on an eventfd, and never read the flag that poll takes"},
    Explained{Reason::FenceForFence, "fence for fence",
              "one fence in place of another, which no other harness tells apart: planted in the "
              "model checker only"},
    Explained{Reason::OwnOfTheModel, "model's own",
              "it changes the model checker's word-by-word protocol, or a part of Drain that no "
              "Memory reaches, or knows the ring's size: planted there only"},
    Explained{
        Reason::KernelsDoSo, "kernels do so",
        "real kernels do it, so the simulated kernel does it as well, and the oracle expects it: "
        "planted in the model checker only"},
    Explained{Reason::Unwatched, "unwatched",
              "this harness does not watch reads, and a read of too much changes nothing"},
    Explained{Reason::AroundMemory, "around memory",
              "it reads the ring byte by byte, around the Memory that this harness needs: not "
              "planted"},
    Explained{
        Reason::WaitLoop, "wait loop",
        "this harness has no wait loop, or its other rings hide the fault: not planted; a property "
        "finds it"},
    Explained{
        Reason::ShortRecords, "oversize",
        "payloads are too short, or overwrite the ring, which the oracle then does not judge; a "
        "property finds it"},
    Explained{
        Reason::HostileRings, "hostile rings",
        "no kernel writes such a size; a property and fuzz/planted_fault.cc have rings of any "
        "bytes, and find it"},
    Explained{Reason::RaceByChance, "by chance",
              "not a fault of order: a race is reported only if a run hits a window of a few "
              "instructions"},
    Explained{Reason::EarlyWakeup, "early wakeup", "a consumer may be woken without a record"},
    Explained{
        Reason::OneRing, "one ring",
        "this harness has a consumer for each ring: not planted; the simulator has one for all"},
};

const Explained& explained(Reason reason) {
  return *std::ranges::find(kReasons, reason, &Explained::reason);
}

}  // namespace

std::span<const Fault> catalogue() {
  static const auto all = [] {
    const auto kernel = faults_of_a_kernel();
    std::vector<Fault> every{kernel.begin(), kernel.end()};
    for (const auto& others : {faults_of_a_consumer(), faults_of_many_rings()}) {
      every.insert(every.end(), others.begin(), others.end());
    }
    return every;
  }();
  return all;
}

const Fault* find_fault(std::string_view name) {
  const auto found =
      std::ranges::find_if(catalogue(), [&](const Fault& fault) { return fault.name == name; });
  return found == catalogue().end() ? nullptr : &*found;
}

const char* what(std::string_view name) {
  const Fault* const fault = find_fault(name);
  if (fault == nullptr) throw std::logic_error{"not in the catalogue: " + std::string{name}};
  return fault->what;
}

const char* to_string(Reason reason) {
  return explained(reason).name;
}

const char* explanation(Reason reason) {
  return explained(reason).explanation;
}

std::span<const Reason> reasons() {
  static const auto all = [] {
    std::array<Reason, kReasons.size()> each{};
    std::ranges::transform(kReasons, each.begin(), &Explained::reason);
    return each;
  }();
  return all;
}

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::Kernel:
      return "kernel";
    case Kind::Memory:
      return "memory";
    case Kind::Consumer:
      return "consumer";
    case Kind::Variant:
      return "variant";
  }
  return "unknown kind";
}

const char* to_string(Harness harness) {
  switch (harness) {
    case Harness::Scripts:
      return "scripts";
    case Harness::Simulator:
      return "sim";
    case Harness::Stress:
      return "stress";
    case Harness::ThreadSanitizer:
      return "tsan";
    case Harness::Model:
      return "check";
  }
  return "unknown harness";
}

std::span<const Harness> harnesses() {
  return kHarnessList;
}

bool is_found(const Expected& expected) {
  return !std::holds_alternative<Reason>(expected) && !std::holds_alternative<Holds>(expected);
}

bool is_not_planted(Reason reason) {
  switch (reason) {
    case Reason::FenceForFence:
    case Reason::OwnOfTheModel:
    case Reason::KernelsDoSo:
    case Reason::AroundMemory:
    case Reason::WaitLoop:
    case Reason::OneRing:
      return true;
    default:
      return false;
  }
}

std::string in_words(const Expected& expected) {
  if (const auto* const invariant = std::get_if<Invariant>(&expected)) return to_string(*invariant);
  if (std::holds_alternative<AnyInvariant>(expected)) return "any invariant";
  if (std::holds_alternative<DataRace>(expected)) return "data race";
  if (std::holds_alternative<Holds>(expected)) return "holds";
  return std::string{"not seen: "} + to_string(std::get<Reason>(expected));
}

std::string property_of(const Fault& fault) {
  if (const auto* const reason = std::get_if<Reason>(&fault.property)) {
    return std::string{"("} + to_string(*reason) + ")";
  }
  const std::string_view test = std::get<const char*>(fault.property);
  return std::string{test} + (test == kAnyScript ? std::string{"/"} + fault.name : "");
}

}  // namespace perfring::faults
