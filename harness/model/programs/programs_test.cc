// Tests that the checker gives algorithms their known verdicts.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/trace.h"
#include "harness/model/programs/programs.h"

namespace perfring::model {
namespace {

class KnownProgramTest : public testing::TestWithParam<KnownProgram> {};

TEST_P(KnownProgramTest, HasKnownVerdictWithOrWithoutMerging) {
  for (const bool merge : {false, true}) {
    ExploreOptions options;
    options.merge = merge;
    const Result result = explore(GetParam().make(), options);
    EXPECT_EQ(result.bound, "");
    EXPECT_EQ(result.not_proved(), GetParam().violated)
        << (result.violation ? trace_table(*result.violation) : "");
    EXPECT_TRUE(result.violation || merge || result.executions >= 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, KnownProgramTest, testing::ValuesIn(known_programs()),
                         [](const auto& known) {
                           std::string name = known.param.name;
                           name[name.find('/')] = '_';
                           return name;
                         });

// Compares the word-by-word protocol with GenMC: the numbers of executions, and the verdict on each
// fault.

Result explored(Protocol options, unsigned n, bool merge) {
  options.records = options.drains = n;
  ExploreOptions how;
  how.merge = merge;
  return explore(protocol(options), how);
}

TEST(ProtocolTest, ExecutionsAreAsManyAsGenMcCounts) {
  constexpr std::array<std::uint64_t, 5> kExecutions = {9, 54, 340, 2190, 14329};
  for (unsigned n = 2; n <= 6; ++n) {
    const Result result = explored({}, n, false);
    EXPECT_TRUE(result.proved());
    EXPECT_EQ(result.executions, kExecutions[n - 2]) << "N = POLLS = " << n;
  }
}

TEST(ProtocolTest, ExecutionsWithFourDrainsMatchGenMcCount) {
  Protocol options;
  options.drains = 4;
  options.records = 6;
  EXPECT_EQ(explore(protocol(options)).executions, 2010u);
  options.records = 8;
  EXPECT_EQ(explore(protocol(options)).executions, 7305u);
}

// The smallest N at which the protocol fails, for records of 1 word, of 2 and 1 words in turn, and
// of 3, 2 and 1 words in turn; 0 if it does not fail.
using Smallest = std::array<unsigned, 3>;

struct Expected {
  std::string fault;
  Smallest a, b;
  bool race;  // form B fails by a race
};

const std::vector<Expected> kExpected = {
    {"", {0, 0, 0}, {0, 0, 0}, false},
    {"no_acquire_fence", {2, 2, 2}, {2, 2, 2}, true},
    {"no_full_fence", {0, 0, 0}, {5, 3, 2}, true},
    {"no_smp_wmb", {2, 2, 2}, {2, 2, 2}, true},
    {"space_off_by_8", {0, 0, 0}, {0, 0, 0}, false},
    {"full_ring_modulo", {4, 4, 3}, {4, 4, 3}, false},
    {"ignores_tail", {5, 3, 2}, {5, 3, 2}, false},
    {"one_record_too_many", {5, 3, 2}, {5, 3, 2}, false},
    {"commits_before_reading", {5, 3, 2}, {5, 3, 2}, true},
    {"commits_early", {0, 0, 3}, {0, 0, 3}, true},
    {"release_for_full", {0, 0, 0}, {0, 0, 0}, false},
    {"acquire_for_full", {0, 0, 0}, {5, 3, 2}, true},
    {"acquire_fence_first", {2, 2, 2}, {2, 2, 2}, true},
    {"head_read_again", {2, 2, 3}, {2, 2, 3}, true},
    {"store_store_for_release", {0, 0, 0}, {0, 0, 0}, false},
};

unsigned smallest(const Expected& expected, Protocol::Form form, std::vector<unsigned> lengths,
                  bool merge) {
  Protocol options;
  if (!expected.fault.empty()) find_protocol_fault(expected.fault)->change(options);
  options.form = form;
  options.lengths = std::move(lengths);
  for (unsigned n = 2; n <= 5; ++n) {
    const Result result = explored(options, n, merge);
    EXPECT_EQ(result.bound, "");
    if (result.proved()) continue;
    const std::string what = result.not_proved();
    EXPECT_EQ(what == kDataRace, expected.race && form == Protocol::Form::B) << what;
    return n;
  }
  return 0;
}

class ProtocolVerdictsTest : public testing::TestWithParam<bool> {};

TEST_P(ProtocolVerdictsTest, SmallestFailingSizesMatchOtherCheckers) {
  const std::array<std::vector<unsigned>, 3> lengths = {{{1}, {2, 1}, {3, 2, 1}}};
  for (const Expected& expected : kExpected) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      SCOPED_TRACE(expected.fault + ", lengths " + std::to_string(i));
      EXPECT_EQ(smallest(expected, Protocol::Form::A, lengths[i], GetParam()), expected.a[i])
          << "A";
      EXPECT_EQ(smallest(expected, Protocol::Form::B, lengths[i], GetParam()), expected.b[i])
          << "B";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutMerging, ProtocolVerdictsTest, testing::Bool(),
                         [](const auto& merge) { return merge.param ? "Merged" : "Each"; });

std::string violated(const ProtocolFault& fault, Protocol::Form form) {
  Protocol options;
  options.form = form;
  options.records = options.drains = 3;
  options.lengths = {3, 2, 1};
  fault.change(options);
  const Result result = explore(protocol(options));
  EXPECT_EQ(result.bound, "");
  return result.not_proved();
}

TEST(ProtocolTest, EachFaultIsFoundByTheCheckThatItNames) {
  const auto expected = [](const char* check) { return check != nullptr ? check : ""; };
  for (const ProtocolFault& fault : protocol_faults()) {
    EXPECT_EQ(violated(fault, Protocol::Form::A), expected(fault.in_a)) << fault.name;
    EXPECT_EQ(violated(fault, Protocol::Form::B), expected(fault.in_b)) << fault.name;
  }
}

// aya lacked the acquire fence from 2021 to 2026. Committing once per drain made no difference.
TEST(ProtocolTest, AyaFailsOnlyAsItWasUntil2026) {
  const ProtocolFault& until_2026 = *find_protocol_fault("aya_until_2026");
  EXPECT_EQ(violated(until_2026, Protocol::Form::A),
            "intact: a word differs from what was written there");
  EXPECT_EQ(violated(until_2026, Protocol::Form::B), kDataRace);
  for (const auto form : {Protocol::Form::A, Protocol::Form::B}) {
    EXPECT_EQ(violated(*find_protocol_fault("commits_by_record"), form), "");
    EXPECT_EQ(violated({"as it is", [](Protocol&) {}, nullptr, nullptr}, form), "");
  }
}

// An overwritten header is harmless if it is read once, but not if it is read twice.
TEST(ProtocolTest, AHeaderReadTwiceLeadsPastDataHead) {
  EXPECT_EQ(violated(*find_protocol_fault("oversize"), Protocol::Form::A), "");
  EXPECT_EQ(violated(*find_protocol_fault("header_read_twice"), Protocol::Form::A),
            "in_ring: a record extends past data_head");
}

TEST(ProtocolTest, MergingLeavesFewStatesOfMany) {
  const Result each = explored({}, 6, false);
  const Result merged = explored({}, 6, true);
  EXPECT_TRUE(merged.proved());
  EXPECT_LT(merged.states * 10, each.states);
}

}  // namespace
}  // namespace perfring::model
