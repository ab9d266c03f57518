// Tests a thread's knowledge of other threads' accesses, which decides races and the values read.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/engine/execution.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/trace.h"

namespace perfring::model {
namespace {

// Returns the number of executions of a program without a violation, or 0 if it is not proved.
std::uint64_t proved_executions(const Program& program) {
  const Result result = explore(program);
  EXPECT_EQ(result.not_proved(), "");
  return result.proved() ? result.executions : 0;
}

// smp_wmb() makes the store known, but not the events that it releases: the read before it still
// races.
TEST(ExecutionTest, AReadThatIsNotAtomicFeedsNoAcquireFence) {
  Program program;
  const Var x = program.var("x"), y = program.var("y"), flag = program.var("flag");
  program.threads.emplace_back([=] {
    x.read();
    y.store(1, std::memory_order_release);
    fence_store_store();
    flag.store(1, std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) != 1) return;
    y.read();
    fence(std::memory_order_acquire);
    x.write(2);
  });
  const Result result = explore(program);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_EQ(result.violation->cause.what, kDataRace);
  EXPECT_EQ(result.violation->events[result.violation->race[0] - 1].location, "x");
}

TEST(ExecutionTest, StoreStoreFencePreventsRaceWithLaterStore) {
  Program program;
  const Var x = program.var("x"), flag = program.var("flag");
  program.threads.emplace_back([=] {
    x.write(1);
    fence_store_store();
    flag.store(1, std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) == 1) x.write(2);
  });
  EXPECT_EQ(proved_executions(program), 2u) << "flag is read as 0 or 1";
}

// This holds although the thread that passed the value on reads it once more.
TEST(ExecutionTest, AReadThatAnotherThreadPassedOnBindsLaterReads) {
  Program program;
  const Var x = program.var("x"), flag = program.var("flag");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] {
    if (x.load(std::memory_order_relaxed) != 1) return;
    flag.store(1, std::memory_order_release);
    x.load(std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) != 1) return;
    check(x.load(std::memory_order_relaxed) == 1, "coherence");
  });
  EXPECT_EQ(proved_executions(program), 3u) << "x is read as 0; or flag as 0, or both as 1";
}

// A relaxed store by a third thread orders the first fence before the second.
TEST(ExecutionTest, ThirdThreadsStoreOrdersFullFences) {
  Program program;
  const Var x = program.var("x"), y = program.var("y"), flag = program.var("flag");
  program.threads.emplace_back([=] {
    x.store(1, std::memory_order_relaxed);
    fence(std::memory_order_seq_cst);
    flag.store(1, std::memory_order_release);
  });
  program.threads.emplace_back([=] {
    if (flag.load(std::memory_order_acquire) == 1) y.store(1, std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (y.load(std::memory_order_relaxed) != 1) return;
    fence(std::memory_order_seq_cst);
    check(x.load(std::memory_order_relaxed) == 1, "a cycle of full fences");
  });
  EXPECT_EQ(proved_executions(program), 3u) << "flag is read as 0; or y as 0, or both as 1";
}

// No two of the fences form a cycle, but all three do.
TEST(ExecutionTest, FullFencesOfThreeThreadsFormNoCycle) {
  const auto program = [](std::memory_order order) {
    Program p;
    const Var stored[]{p.var("x"), p.var("y"), p.var("z")};
    const Var missed[]{p.var("missed x"), p.var("missed y"), p.var("missed z")};
    for (const unsigned me : {0u, 1u, 2u}) {
      const Var own = stored[me], next = stored[(me + 1) % 3], miss = missed[me];
      p.threads.emplace_back([=] {
        own.store(1, std::memory_order_relaxed);
        fence(order);
        if (next.load(std::memory_order_relaxed) == 0) miss.store(1, std::memory_order_relaxed);
      });
    }
    p.finally = [x = missed[0], y = missed[1], z = missed[2]] {
      check(x.read() + y.read() + z.read() < 3, "each misses the next one's store");
    };
    return p;
  };
  EXPECT_EQ(proved_executions(program(std::memory_order_seq_cst)), 7u) << "all but one of 2^3";
  EXPECT_TRUE(explore(program(std::memory_order_acq_rel)).violation.has_value());
}

// Each thread reads the value that the other thread's update overwrites.
TEST(ExecutionTest, FullFencesForbidStoreBufferingOfUpdates) {
  const auto program = [](std::memory_order order) {
    Program p;
    const Var x = p.var("x"), y = p.var("y");
    const Var missed[]{p.var("missed x"), p.var("missed y")};
    const auto thread = [=](Var own, Var other, Var miss) {
      own.exchange(1, std::memory_order_relaxed);
      fence(order);
      if (other.load(std::memory_order_relaxed) == 0) miss.store(1, std::memory_order_relaxed);
    };
    p.threads.emplace_back([=, miss = missed[1]] { thread(x, y, miss); });
    p.threads.emplace_back([=, miss = missed[0]] { thread(y, x, miss); });
    p.finally = [one = missed[0], other = missed[1]] {
      check(one.read() + other.read() < 2, "store buffering");
    };
    return p;
  };
  EXPECT_EQ(proved_executions(program(std::memory_order_seq_cst)), 3u) << "all but one of 2^2";
  EXPECT_TRUE(explore(program(std::memory_order_acq_rel)).violation.has_value());
}

// A set of 64 bits holds the locations with non-atomic accesses.
TEST(ExecutionTest, ARaceIsFoundAtEachOfManyLocations) {
  for (const std::size_t raced : {0u, 63u, 64u, 129u}) {
    Program program;
    std::vector<Var> all;
    for (int i = 0; i < 130; ++i) all.push_back(program.var("x " + std::to_string(i)));
    program.threads.emplace_back([x = all[raced]] { x.write(1); });
    program.threads.emplace_back([x = all[raced]] { x.load(std::memory_order_relaxed); });
    EXPECT_TRUE(explore(program).violation.has_value()) << raced;
  }
}

// Two states differ in whether a thread knows of the first of many accesses that could race later.
TEST(StateKeyTest, DifferingFirstAccessPreventsMerging) {
  Program program;
  const Var raced = program.var("raced"), flag = program.var("flag"), other = program.var("other");
  std::vector<Var> own;
  for (int i = 0; i < 40; ++i) own.push_back(program.var("own " + std::to_string(i)));
  program.threads.emplace_back([=] {
    raced.read();
    flag.store(1, std::memory_order_release);
  });
  program.threads.emplace_back([=] {
    for (const Var& each : own) each.read();
    flag.load(std::memory_order_acquire);
    assume(flag.load(std::memory_order_relaxed) == 1);
    checkpoint({});
    other.load(std::memory_order_relaxed);
    raced.write(1);
  });
  for (const bool merge : {false, true}) {
    ExploreOptions options;
    options.merge = merge;
    EXPECT_TRUE(explore(program, options).violation.has_value());
  }
}

// Two checkpoints are the same if they have the same place in the source and the same values.

struct At {
  Where where;
  std::uint64_t value = 0;
};

// Returns the values that a thread stores, with merging. Depending on a read, the thread continues
// from the first checkpoint and stores 1, or from the second and stores 2.
std::set<std::uint64_t> stored_after(const At& first, const At& second) {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] {
    const bool one = x.load(std::memory_order_relaxed) == 0;
    const At& at = one ? first : second;
    checkpoint({at.value}, at.where);
    y.store(one ? 1 : 2, std::memory_order_relaxed);
  });
  std::set<std::uint64_t> stored;
  ExploreOptions options;
  options.merge = true;
  options.on_execution = [&](const Execution& x_end) {
    stored.insert(x_end.events[x_end.latest[y.location()]].written);
  };
  explore(program, options);
  return stored;
}

constexpr Where kPlace{.line = 10, .file = "a.cc", .column = 3};

TEST(CheckpointTest, OnePlaceWithOneValueIsOneCheckpoint) {
  EXPECT_EQ(stored_after({kPlace, 7}, {kPlace, 7}).size(), 1u);
}

TEST(CheckpointTest, AnotherFileIsAnotherCheckpoint) {
  EXPECT_EQ(stored_after({kPlace}, {{.line = 10, .file = "b.cc", .column = 3}}).size(), 2u);
}

// A header's path may be a different pointer in each translation unit.
TEST(CheckpointTest, AFileIsKnownByItsName) {
  static constexpr char kSame[] = "a.cc";
  EXPECT_EQ(stored_after({kPlace}, {{.line = 10, .file = kSame, .column = 3}}).size(), 1u);
}

TEST(CheckpointTest, AnotherLineIsAnotherCheckpoint) {
  EXPECT_EQ(stored_after({kPlace}, {{.line = 11, .file = "a.cc", .column = 3}}).size(), 2u);
}

TEST(CheckpointTest, AnotherColumnIsAnotherCheckpoint) {
  EXPECT_EQ(stored_after({kPlace}, {{.line = 10, .file = "a.cc", .column = 4}}).size(), 2u);
  const Where left = Where::here(), right = Where::here();
  EXPECT_EQ(stored_after({left}, {right}).size(), 2u);
}

TEST(CheckpointTest, AnotherValueIsAnotherCheckpoint) {
  EXPECT_EQ(stored_after({kPlace, 7}, {kPlace, 8}).size(), 2u);
}

// The checkpoint omits a value on which the thread still depends.
TEST(CompareMergedTest, ACheckpointThatLeavesOutAValueIsADifference) {
  const auto program = [](bool lies) {
    Program p;
    const Var x = p.var("x");
    const Var y = p.var("y");
    p.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
    p.threads.emplace_back([=] {
      const std::uint64_t first = x.load(std::memory_order_relaxed);
      const std::uint64_t second = x.load(std::memory_order_relaxed);
      lies ? checkpoint({second}) : checkpoint({first, second});
      y.store(2 * first + second, std::memory_order_relaxed);
    });
    return p;
  };
  const Comparison honest = compare_merged(program(false));
  EXPECT_EQ(honest.each.not_proved() + honest.merged.not_proved(), "");
  EXPECT_TRUE(honest.differences.empty());
  EXPECT_FALSE(compare_merged(program(true)).differences.empty());
}

// Memory ends with the same values whether or not the check fails.
TEST(CompareMergedTest, AViolationThatMergingLosesIsADifference) {
  Program p;
  const Var x = p.var("x");
  p.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  p.threads.emplace_back([=] {
    const bool is_read = x.load(std::memory_order_relaxed) == 1;
    checkpoint({});
    check(is_read, "the store is not seen");
  });
  EXPECT_EQ(compare_merged(p).differences,
            std::vector<std::string>{"only without merging: the store is not seen"});
}

// The thread stores the value before a checkpoint that omits it, and stores it again afterwards.
TEST(CompareMergedTest, AnOutcomeThatMergingAddsIsADifference) {
  Program p;
  const Var x = p.var("x"), y = p.var("y"), z = p.var("z");
  p.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  p.threads.emplace_back([=] {
    const std::uint64_t read = x.load(std::memory_order_relaxed);
    y.store(read + 1, std::memory_order_relaxed);
    checkpoint({});
    z.store(read + 1, std::memory_order_relaxed);
  });
  const std::vector<std::string> differences = compare_merged(p).differences;
  const auto count = [&](std::string_view start) {
    return std::ranges::count_if(differences,
                                 [&](const std::string& each) { return each.starts_with(start); });
  };
  EXPECT_EQ(count("only without merging: ends with x = 0x1, y = 0x"), 1);
  EXPECT_EQ(count("only with merging: ends with x = 0x1, y = 0x"), 1);
}

}  // namespace
}  // namespace perfring::model
