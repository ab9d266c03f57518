#include "harness/faults/fault_catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/faults/planted.h"

namespace perfring::faults {
namespace {

bool holds(const Expected& expected) {
  return std::holds_alternative<Holds>(expected);
}

TEST(FaultCatalogueTest, NoTwoFaultsShareNameOrDescription) {
  std::set<std::string> names;
  std::set<std::string> described;
  for (const Fault& fault : catalogue()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_TRUE(described.insert(fault.what).second) << fault.name;
    EXPECT_EQ(find_fault(fault.name), &fault);
  }
  EXPECT_EQ(find_fault("none"), nullptr);
}

// Otherwise nothing shows that it is a fault.
TEST(FaultCatalogueTest, EachFaultIsFoundSomewhere) {
  for (const Fault& fault : catalogue()) {
    if (fault.kind == FaultKind::Variant) continue;
    const bool found = std::ranges::any_of(fault.expected, is_found);
    const bool by_a_property = std::holds_alternative<const char*>(fault.property);
    EXPECT_TRUE(found || by_a_property) << fault.name;
    EXPECT_TRUE(std::ranges::none_of(fault.expected, holds)) << fault.name;
  }
}

TEST(FaultCatalogueTest, VariantIsFoundNowhere) {
  for (const Fault& fault : catalogue()) {
    if (fault.kind != FaultKind::Variant) continue;
    EXPECT_TRUE(std::ranges::any_of(fault.expected, holds)) << fault.name;
    EXPECT_TRUE(std::ranges::none_of(fault.expected, is_found)) << fault.name;
    EXPECT_TRUE(std::holds_alternative<Reason>(fault.property)) << fault.name;
  }
}

TEST(FaultCatalogueTest, OnlyAKernelsFaultDiffersFromARecordedKernel) {
  for (const Fault& fault : catalogue()) {
    for (const Harness harness : harnesses()) {
      const Expected& expected = fault.in(harness);
      const bool differs = std::holds_alternative<Differs>(expected);
      if (harness == Harness::Differential) {
        EXPECT_TRUE(differs || std::holds_alternative<Reason>(expected)) << fault.name;
        EXPECT_TRUE(!differs || fault.kind == FaultKind::Kernel) << fault.name;
      } else {
        EXPECT_FALSE(differs) << fault.name << " in " << to_string(harness);
      }
    }
  }
}

TEST(FaultCatalogueTest, EachReasonIsUsed) {
  std::set<Reason> used;
  for (const Fault& fault : catalogue()) {
    for (const Expected& expected : fault.expected) {
      if (const auto* const reason = std::get_if<Reason>(&expected)) used.insert(*reason);
    }
    if (const auto* const reason = std::get_if<Reason>(&fault.property)) used.insert(*reason);
    const Conforms conforms = by_conformance(fault);
    if (const auto* const reason = std::get_if<Reason>(&conforms)) used.insert(*reason);
    const Expected fuzzed = by_fuzzing(fault);
    if (const auto* const reason = std::get_if<Reason>(&fuzzed)) used.insert(*reason);
  }
  std::set<std::string> names;
  for (const Reason reason : reasons()) {
    EXPECT_TRUE(names.insert(to_string(reason)).second) << to_string(reason);
    EXPECT_TRUE(used.contains(reason)) << to_string(reason);
  }
  EXPECT_EQ(names.size(), used.size());
}

TEST(FaultCatalogueTest, EachFaultThatIsATemplateIsOfItsKind) {
  const auto of = [](FaultKind kind) {
    return [kind](auto named) { return std::pair{named.name, kind}; };
  };
  const auto planted = plant_all<std::pair<const char*, FaultKind>>(
      of(FaultKind::Kernel), of(FaultKind::Memory), of(FaultKind::Consumer));
  for (const auto& [name, kind] : planted) {
    const Fault* const fault = find_fault(name);
    ASSERT_NE(fault, nullptr) << name;
    EXPECT_EQ(fault->kind, kind) << name;
  }
}

}  // namespace
}  // namespace perfring::faults
