// The protocol word by word beside what GenMC said of it: the same numbers of executions, and the
// same verdict on each way to get it wrong.

#include "harness/model/protocol.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "harness/model/explorer.h"

namespace perfring::model {
namespace {

Result explored(Protocol options, unsigned n, bool merge) {
  options.records = options.polls = n;
  ExploreOptions how;
  how.merge = merge;
  return explore(protocol(options), how);
}

TEST(Protocol, HasAsManyExecutionsAsGenMcCounts) {
  constexpr std::array<std::uint64_t, 5> kExecutions = {9, 54, 340, 2190, 14329};
  for (unsigned n = 2; n <= 6; ++n) {
    const Result result = explored({}, n, false);
    EXPECT_TRUE(result.proved());
    EXPECT_EQ(result.executions, kExecutions[n - 2]) << "N = POLLS = " << n;
  }
}

// The smallest N at which it fails, for records of 1 word, of 2 and 1, of 3, 2 and 1 words in turn;
// 0: it does not.
using Smallest = std::array<unsigned, 3>;

struct Variant {
  std::string name;
  std::function<void(Protocol&)> change;
  Smallest a, b;
  bool race;  // in form B
};

using B = Protocol::Barrier;
using Space = Protocol::Space;
using Commit = Protocol::Commit;

const std::vector<Variant> kVariants = {
    {"correct", [](Protocol&) {}, {0, 0, 0}, {0, 0, 0}, false},
    {"no acquire fence",
     [](Protocol& p) { p.after_head_load = B::None; },
     {2, 2, 2},
     {2, 2, 2},
     true},
    {"no full fence",
     [](Protocol& p) { p.before_tail_store = B::None; },
     {0, 0, 0},
     {5, 3, 2},
     true},
    {"no smp_wmb", [](Protocol& p) { p.before_head_store = B::None; }, {2, 2, 2}, {2, 2, 2}, true},
    {"a completely full ring",
     [](Protocol& p) { p.space = Space::AllOfIt; },
     {0, 0, 0},
     {0, 0, 0},
     false},
    {"the same with positions modulo the size",
     [](Protocol& p) { p.space = Space::AllOfIt, p.modulo_size = true; },
     {4, 4, 3},
     {4, 4, 3},
     false},
    {"no space check",
     [](Protocol& p) { p.space = Space::Unchecked; },
     {5, 3, 2},
     {5, 3, 2},
     false},
    {"one word too many",
     [](Protocol& p) { p.space = Space::OneTooMany; },
     {5, 3, 2},
     {5, 3, 2},
     false},
    {"tail before the batch",
     [](Protocol& p) { p.commit = Commit::BeforeBatch; },
     {5, 3, 2},
     {5, 3, 2},
     true},
    {"tail after each header",
     [](Protocol& p) { p.commit = Commit::AfterEachHeader; },
     {0, 0, 3},
     {0, 0, 3},
     true},
    {"release in place of the full fence",
     [](Protocol& p) { p.before_tail_store = B::Release; },
     {0, 0, 0},
     {0, 0, 0},
     false},
    {"acquire in place of the full fence",
     [](Protocol& p) { p.before_tail_store = B::Acquire; },
     {0, 0, 0},
     {5, 3, 2},
     true},
    {"acquire fence before the head load",
     [](Protocol& p) { p.after_head_load = B::None, p.fence_before_head_load = true; },
     {2, 2, 2},
     {2, 2, 2},
     true},
    {"head read again", [](Protocol& p) { p.head_read_again = true; }, {2, 2, 3}, {2, 2, 3}, true},
    {"store-store fence for smp_wmb",
     [](Protocol& p) { p.before_head_store = B::StoreStore; },
     {0, 0, 0},
     {0, 0, 0},
     false},
};

unsigned smallest(const Variant& variant, Protocol::Form form, std::vector<unsigned> lengths,
                  bool merge) {
  Protocol options;
  variant.change(options);
  options.form = form;
  options.lengths = std::move(lengths);
  for (unsigned n = 2; n <= 5; ++n) {
    const Result result = explored(options, n, merge);
    EXPECT_EQ(result.bound, "");
    if (!result.violation) continue;
    const bool race = result.violation->what == "data race";
    EXPECT_EQ(race, variant.race && form == Protocol::Form::B) << result.violation->what;
    return n;
  }
  return 0;
}

class Verdicts : public testing::TestWithParam<bool> {};

TEST_P(Verdicts, AreThoseOfOtherCheckers) {
  const std::array<std::vector<unsigned>, 3> lengths = {{{1}, {2, 1}, {3, 2, 1}}};
  for (const Variant& variant : kVariants) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      SCOPED_TRACE(variant.name + ", lengths " + std::to_string(i));
      EXPECT_EQ(smallest(variant, Protocol::Form::A, lengths[i], GetParam()), variant.a[i]) << "A";
      EXPECT_EQ(smallest(variant, Protocol::Form::B, lengths[i], GetParam()), variant.b[i]) << "B";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutMerging, Verdicts, testing::Bool(),
                         [](const auto& merge) { return merge.param ? "Merged" : "Each"; });

TEST(Protocol, MergingLeavesFewStatesOfMany) {
  const Result each = explored({}, 6, false);
  const Result merged = explored({}, 6, true);
  EXPECT_TRUE(merged.proved());
  EXPECT_LT(merged.states * 10, each.states);
}

}  // namespace
}  // namespace perfring::model
