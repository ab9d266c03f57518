// Checks the source that ships, and the protocol, at larger bounds than ring_program_test and
// model_catalogue_test. Run it by hand: the READMEs of ring/ and programs/ give the bounds and the
// time.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include "harness/model/engine/explorer.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/programs/programs.h"
#include "harness/model/ring/ring_program.h"

namespace perfring::model {
namespace {

struct Size {
  unsigned records, drains;
};

RingOptions options_of(const Size& size, bool atomic_words) {
  RingOptions options;
  options.atomic_words = atomic_words;
  options.records = size.records;
  options.drains = size.drains;
  return options;
}

Bounds bounds() {
  return {.executions = std::uint64_t{1} << 40, .seconds = 4 * 3600};
}

template <class Explore>
void expect_proved(const Size& size, std::string_view by, Explore explore_it) {
  const std::clock_t start = std::clock();
  const Result result = explore_it();
  std::printf("%.*s, %u records, %u drains: %llu executions, %llu states, %.1f s of a processor\n",
              static_cast<int>(by.size()), by.data(), size.records, size.drains,
              static_cast<unsigned long long>(result.executions),
              static_cast<unsigned long long>(result.states),
              static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  std::fflush(stdout);
  EXPECT_TRUE(result.proved()) << result.bound
                               << (result.violation ? trace_table(*result.violation) : "");
}

class MachineLongTest : public testing::TestWithParam<MemoryModel> {};

TEST_P(MachineLongTest, LargerBoundsHaveNoViolation) {
  for (const Size size : {Size{4, 2}, Size{5, 3}, Size{6, 3}}) {
    const Program program = ring_program<>(options_of(size, true));
    expect_proved(size, title(GetParam()),
                  [&] { return explore_machine(program, GetParam(), {.bounds = bounds()}); });
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, MachineLongTest,
                         testing::Values(MemoryModel::AArch64, MemoryModel::RiscV),
                         [](const auto& machine) {
                           return std::string{title(machine.param)}.substr(0, 4);
                         });

TEST(Rc11LongTest, LargerBoundsHaveNoViolation) {
  for (const bool atomic_words : {true, false}) {
    for (const Size size : {Size{6, 3}, Size{12, 6}, Size{16, 8}}) {
      const Program program = ring_program<>(options_of(size, atomic_words));
      expect_proved(size, atomic_words ? "RC11, form A" : "RC11, form B",
                    [&] { return explore(program, {.bounds = bounds(), .merge = true}); });
    }
  }
}

// Explores the protocol, at sizes up to those of the longest runs of other checkers.
Result explored(Protocol options, unsigned n, bool merge) {
  options.records = options.drains = n;
  ExploreOptions how;
  how.merge = merge;
  const Result result = explore(protocol(options), how);
  std::printf("N = POLLS = %u: %llu executions, %llu states, %.2f s\n", n,
              static_cast<unsigned long long>(result.executions),
              static_cast<unsigned long long>(result.states), result.seconds);
  EXPECT_TRUE(result.proved()) << result.bound;
  return result;
}

TEST(ProtocolLongTest, ExecutionsAreAsManyAsGenMcCounts) {
  EXPECT_EQ(explored({}, 7, false).executions, 94832u);
  EXPECT_EQ(explored({}, 8, false).executions, 633087u);
  Protocol longer;
  longer.lengths = {2, 1};
  EXPECT_EQ(explored(longer, 8, false).executions, 183297u);
  longer.lengths = {3, 2, 1};
  EXPECT_EQ(explored(longer, 8, false).executions, 42879u);
}

TEST(ProtocolLongTest, TwelveDrainsHaveNoViolation) {
  for (const auto form : {Protocol::Form::A, Protocol::Form::B}) {
    Protocol options;
    options.form = form;
    explored(options, 8, true);
    explored(options, 12, true);
  }
}

}  // namespace
}  // namespace perfring::model
