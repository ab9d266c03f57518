// The source that ships, in every execution that the memory model allows: as it is it holds, and
// without any one of its edges it does not.

#include "harness/model/ring_program.h"

#include <gtest/gtest.h>

#include "harness/model/explorer.h"

namespace perfring::model {
namespace {

RingOptions options(bool atomic_words) {
  RingOptions options;
  options.atomic_words = atomic_words;
  options.payloads = {4, 12};
  return options;
}

std::string verdict(const Program& program, bool merge = true) {
  ExploreOptions how;
  how.merge = merge;
  const Result result = explore(program, how);
  if (!result.bound.empty()) return result.bound;
  return result.violation ? result.violation->what : "holds";
}

struct NoAcquireFence : ModelMemory {
  static void fence_after_read_of(const SharedPosition&) {}
};
struct NoFullFence : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) {}
};
struct ReleaseForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence(std::memory_order_release); }
};
struct AcquireForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence(std::memory_order_acquire); }
};
// aya's until 2026.
struct FenceBeforeTheRead : ModelMemory {
  static Position read_once(const SharedPosition& field) {
    fence(std::memory_order_acquire);
    return ModelMemory::read_once(field);
  }
  static void fence_after_read_of(const SharedPosition&) {}
};
struct CommitsFirst : ModelMemory {
  static void fence_after_read_of(const SharedPosition& head) {
    ModelMemory::fence_after_read_of(head);
    fence(std::memory_order_seq_cst);
    ModelRing::here->tail().store(ModelRing::here->position(&head).load(std::memory_order_relaxed),
                                  std::memory_order_relaxed);
  }
};

struct NoWmb : ModelCpu {
  void smp_wmb(const __u64&) {}
};
struct ReleaseForWmb : ModelCpu {
  void smp_wmb(const __u64&) { fence(std::memory_order_release); }
};
struct PublishesFirst : ModelCpu {
  void reserved(kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    ModelCpu::write_once(rb.user_page->data_head, position + size);
  }
};
// A ring full to the last byte is no harm, as positions run free.
struct EightMore : ModelCpu {
  __u64 read_once(const __u64& field) { return ModelCpu::read_once(field) + 8; }
};
// Takes every ring for an empty one.
struct IgnoresTail : ModelCpu {
  __u64 read_once(const __u64&) { return ModelCpu::read_once(ModelRing::here->page().data_head); }
};

class EachForm : public testing::TestWithParam<bool> {};

TEST_P(EachForm, HoldsForSixRecordsAndThreeDrains) {
  for (const auto consume :
       {Consume::ForEach, Consume::Fold, Consume::TryFold, Consume::Break, Consume::Throw}) {
    RingOptions how = options(GetParam());
    how.consume = consume;
    EXPECT_EQ(verdict(ring_program<>(how)), "holds");
  }
}

TEST_P(EachForm, HoldsWithoutMerging) {
  RingOptions how = options(GetParam());
  how.records = 4;
  EXPECT_EQ(verdict(ring_program<>(how), false), "holds");
}

TEST_P(EachForm, HoldsAcrossTheWrapOfA32BitHead) {
  RingOptions how = options(GetParam());
  how.word = kernel::Word::k32;
  how.start = 0xffff'ffe8;
  EXPECT_EQ(verdict(ring_program<>(how)), "holds");
}

TEST_P(EachForm, HoldsWithWhatSuffices) {
  const RingOptions how = options(GetParam());
  EXPECT_EQ(verdict(ring_program<ReleaseForFull>(how)), "holds");
  EXPECT_EQ(verdict(ring_program<ModelMemory, ReleaseForWmb>(how)), "holds");
  EXPECT_EQ(verdict(ring_program<ModelMemory, EightMore>(how)), "holds");
}

TEST_P(EachForm, FailsWithoutWhatIsNecessary) {
  const RingOptions how = options(GetParam());
  const std::string seen =
      GetParam() ? "intact: a word differs from what was written there" : "data race";
  EXPECT_EQ(verdict(ring_program<NoAcquireFence>(how)), seen);
  EXPECT_EQ(verdict(ring_program<FenceBeforeTheRead>(how)), seen);
  EXPECT_EQ(verdict(ring_program<ModelMemory, NoWmb>(how)), seen);
  EXPECT_EQ(verdict(ring_program<ModelMemory, PublishesFirst>(how)), seen);
  EXPECT_NE(verdict(ring_program<CommitsFirst>(how)), "holds");
  EXPECT_NE(verdict(ring_program<ModelMemory, IgnoresTail>(how)), "holds");
}

// RC11 has no load buffering, so that with atomic words nothing shows: see the README.
TEST_P(EachForm, ShowsTheFullFenceWhereWordsAreNotAtomic) {
  const RingOptions how = options(GetParam());
  const std::string seen = GetParam() ? "holds" : "data race";
  EXPECT_EQ(verdict(ring_program<NoFullFence>(how)), seen);
  EXPECT_EQ(verdict(ring_program<AcquireForFull>(how)), seen);
}

INSTANTIATE_TEST_SUITE_P(Words, EachForm, testing::Bool(),
                         [](const auto& atomic) { return atomic.param ? "A" : "B"; });

}  // namespace
}  // namespace perfring::model
