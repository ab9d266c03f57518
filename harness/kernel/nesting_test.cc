// Outputs that interrupt one another at every step: exhaustive, three levels deep.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/kernel/kernel_testing.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"

namespace perfring::kernel {
namespace {

struct Scene {
  std::array<std::size_t, kLevels> sizes;  // sizes of the outputs' payloads
  bool backward = false;
  std::uint64_t room = kPage;  // bytes free at the start
  unsigned lost = 0;           // losses before the start
  std::uint64_t start = 0;
  bool before_5_2 = false;
};

// One trial of a scene, and the checks of its result.
class Trial {
 public:
  Trial(const Scene& scene, const std::array<unsigned, kLevels>& at, unsigned again = kNever)
      : scene_{scene} {
    ring_.cpu.at = at;
    ring_.cpu.again = again;
    ring_.cpu.interrupt = [this](std::size_t level) { output(level); };
    ring_.cpu.barrier = [this] { covered_ = ring_.rb().head; };
    ring_.cpu.published = [this](__u64 head) { check_published(head); };
    start_at(ring_.rb(), scene.start);
    ring_.rb().before_5_2 = scene.before_5_2;
    covered_ = last_ = first_ = ring_.head();
    // Sets the tail that leaves this room, as if the rest of the ring were unread.
    const std::uint64_t used = kPage - scene.room;
    ring_.tail(scene.backward ? scene.start + used : scene.start - used);
    ring_.rb().lost = scene.lost;
    output(0);
    check_end();
  }

  // The number of steps of each level. If it does not exceed the step chosen for the interrupt, the
  // output ended first.
  const std::array<unsigned, kLevels>& steps() const { return ring_.cpu.steps; }
  // The largest distance by which data_head went back.
  std::uint64_t went_back() const { return went_back_; }

 private:
  static RingSetup setup(bool backward) {
    RingSetup setup;
    setup.attr.write_backward = backward;
    return setup;
  }

  // Outputs the payload of a level: each byte is the level's number.
  void output(std::size_t level) {
    if (level == kLevels) {
      const int error = bpf_perf_event_output(ring_.cpu, *ring_.map, 0, {});
      EXPECT_EQ(error, -EBUSY);
      return;
    }
    const std::vector<std::byte> payload(scene_.sizes[level], static_cast<std::byte>(level + 1));
    const int error = bpf_perf_event_output(ring_.cpu, *ring_.map, 0, payload);
    EXPECT_TRUE(error == 0 || error == -ENOSPC) << error;
    if (error == 0) {
      ++written_;
    } else {
      ++refused_;
      refused_at_[level] = true;
    }
  }

  std::uint64_t moved(std::uint64_t head) const {
    return scene_.backward ? first_ - head : head - first_;
  }

  // Checks that every byte up to `head` belongs to a whole record.
  void check_published(std::uint64_t head) {
    if (moved(head) < moved(last_)) {
      EXPECT_TRUE(scene_.before_5_2) << "data_head goes back";
      went_back_ = std::max(went_back_, moved(last_) - moved(head));
    }
    // B covers the stores before the barrier. An interrupt after it stores further on.
    EXPECT_LE(moved(head), moved(covered_));
    // Only the outermost output publishes: the outputs that this one interrupted have no
    // unpublished reservation. (Before 5.2 they may have one, but have filled it by then.)
    for (const auto& [position, size, lost, level] : ring_.cpu.reservations) {
      const std::uint64_t end = scene_.backward ? position : position + size;
      EXPECT_TRUE(scene_.before_5_2 || level >= ring_.cpu.bpf_trace_nest_level ||
                  moved(end) <= moved(last_));
    }
    if (moved(head) > moved(last_)) last_ = head;
    walk(head);
  }

  // Reads and counts the ring's records as a consumer does: forward from the oldest record, or from
  // the newest if the ring is written backward.
  void walk(std::uint64_t head) {
    samples_ = 0;
    lost_.clear();
    levels_.clear();
    std::uint64_t at = scene_.backward ? head : first_;
    for (const std::uint64_t end = at + moved(head); at != end;) {
      const auto type = ring_.template field<std::uint32_t>(at);
      const std::uint16_t size = ring_.size_at(at);
      ASSERT_TRUE(size >= 8 && size <= end - at) << size << " at " << at;
      if (type == PERF_RECORD_LOST) {
        ASSERT_EQ(size, 24);
        ASSERT_EQ(ring_.template field<std::uint64_t>(at + 8), 7u);
        lost_.push_back(ring_.template field<std::uint64_t>(at + 16));
      } else {
        ASSERT_EQ(type, std::uint32_t{PERF_RECORD_SAMPLE});
        check_sample(at, size);
      }
      at += size;
    }
  }

  void check_sample(std::uint64_t at, std::uint16_t size) {
    const auto level = ring_.template field<std::uint8_t>(at + 12);
    ASSERT_TRUE(level >= 1 && level <= kLevels) << int{level};
    const std::size_t payload = scene_.sizes[level - 1u];
    ASSERT_EQ(size, (payload + 12 + 7) / 8 * 8);
    ASSERT_EQ(ring_.at(at + 12, payload),
              std::vector<std::byte>(payload, static_cast<std::byte>(level)));
    levels_.push_back(level);
    ++samples_;
  }

  void check_end() {
    EXPECT_EQ(ring_.cpu.bpf_trace_nest_level, 0);
    EXPECT_EQ(ring_.rb().nest, 0u);
    EXPECT_EQ(ring_.head(), ring_.rb().head);  // everything is published
    walk(ring_.head());
    EXPECT_EQ(samples_, written_);
    // Each level's sample is in the ring at most once.
    std::ranges::sort(levels_);
    EXPECT_EQ(std::ranges::adjacent_find(levels_), levels_.end());
    check_lost();
    check_reservations();
    check_flag();
  }

  // The flag is set if something was written, with one exception. perf_output_get_handle() reads
  // rb->wakeup after it has raised rb->nest. An interrupt in between leaves the wakeup to the
  // output that it interrupts, which sees no change. If that output is then refused, nobody wakes.
  void check_flag() {
    bool overlooked = false;
    for (std::size_t i = 0; i < kLevels; ++i)
      overlooked |= refused_at_[i] && ring_.cpu.at[i] == kLosesWakeup;
    overlooked |= refused_at_[0] && ring_.cpu.again == kLosesWakeup;
    const unsigned flag = perf_poll(*ring_.event);
    EXPECT_EQ(flag != 0, ring_.cpu.wakeups != 0);
    EXPECT_TRUE(flag == (written_ != 0 ? kReadable : 0u) || (overlooked && flag == 0));
  }

  void check_lost() {
    EXPECT_EQ(ring_.cpu.refused, refused_);
    EXPECT_EQ(ring_.event->lost_samples, refused_);
    std::uint64_t reported = 0;
    for (const std::uint64_t lost : lost_) reported += lost;
    EXPECT_EQ(reported + ring_.rb().lost, scene_.lost + refused_);
    std::uint64_t traced = 0;
    for (const auto& reservation : ring_.cpu.reservations) traced += reservation.lost.value_or(0);
    EXPECT_EQ(traced, reported);
  }

  // The reservations are contiguous, in the order in which they were made.
  void check_reservations() {
    EXPECT_EQ(ring_.cpu.reservations.size(), written_);
    std::uint64_t at = first_;
    for (const auto& [position, size, lost, level] : ring_.cpu.reservations) {
      if (scene_.backward) at -= size;
      EXPECT_EQ(position, at);
      if (!scene_.backward) at += size;
    }
    EXPECT_EQ(at, ring_.head());
  }

  Scene scene_;
  TestRing<NestingCpu> ring_{setup(scene_.backward)};
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;  // the furthest position published
  std::uint64_t went_back_ = 0;
  std::uint64_t covered_ = 0;  // position covered by a barrier
  unsigned written_ = 0;
  unsigned refused_ = 0;
  std::array<bool, kLevels> refused_at_{};
  unsigned samples_ = 0;
  std::vector<std::uint64_t> lost_;
  std::vector<int> levels_;
};

// Interrupts the outermost output at each of its steps, the interrupting output at each of its
// steps, and the third at each of its own. The output that interrupts the third is refused. Returns
// the number of trials.
std::size_t run_all(const Scene& scene) {
  std::size_t runs = 0;
  for (unsigned outer = 0;; ++outer) {
    for (unsigned middle = 0;; ++middle) {
      unsigned inner = 0;
      for (;; ++inner) {
        const Trial trial{scene, {outer, middle, inner}};
        ++runs;
        const auto& steps = trial.steps();
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << "interrupted at " << outer << ", " << middle << ", " << inner;
          return runs;
        }
        if (steps[0] <= outer) return runs;
        if (steps[1] <= middle || steps[2] <= inner) break;
      }
      if (const Trial trial{scene, {outer, middle, kNever}}; trial.steps()[1] <= middle) break;
    }
  }
}

TEST(NestedOutputTest, InterruptedAnywhereNothingIsLost) {
  EXPECT_GT(run_all({.sizes{40, 13, 5}}), 1500u);
}

// Two interrupts, one after the other, at every pair of steps: the second may come while the record
// of the first is being published.
TEST(NestedOutputTest, InterruptedTwiceNothingIsLost) {
  for (const std::uint64_t room : {std::uint64_t{kPage}, std::uint64_t{96}}) {
    const Scene scene{.sizes{40, 13, 5}, .room = room, .start = kPage};
    unsigned first = 0;
    for (bool more = true; more; ++first) {
      for (unsigned second = first;; ++second) {
        const Trial trial{scene, {first, kNever, kNever}, second};
        ASSERT_FALSE(HasFailure()) << "interrupted at " << first << " and " << second;
        more = trial.steps()[0] > first;
        if (trial.steps()[0] <= second) break;
      }
    }
    EXPECT_GT(first, 10u);
  }
}

// K59: data_head goes back if an interrupt comes between nest = 0 and the store of data_head, by
// the bytes that the interrupt has written. No other step does this, and no kernel since 5.2 does.
TEST(NestedOutputTest, BeforeKernel5_2DataHeadGoesBackForAMoment) {
  std::vector<unsigned> where;
  for (unsigned step = 0;; ++step) {
    const Trial trial{{.sizes{40, 13, 5}, .start = kPage, .before_5_2 = true},
                      {step, kNever, kNever}};
    ASSERT_FALSE(HasFailure()) << step;
    if (trial.went_back() != 0) {
      EXPECT_EQ(trial.went_back(), 32u);
      where.push_back(step);
    }
    if (trial.steps()[0] <= step) break;
  }
  ASSERT_EQ(where.size(), 2u) << "before the barrier, and after it";
  EXPECT_EQ(where[0] + 1, where[1]);
}

TEST(NestedOutputTest, BeforeKernel52InterruptsLoseNothing) {
  EXPECT_GT(run_all({.sizes{40, 13, 5}, .before_5_2 = true}), 1500u);
  run_all({.sizes{40, 13, 5}, .backward = true, .start = 2 * kPage, .before_5_2 = true});
}

TEST(NestedOutputTest, AcrossTheEndOfTheRingNothingIsLost) {
  run_all({.sizes{100, 60, 20}, .start = kPage - 64});
}

TEST(NestedOutputTest, WrittenBackwardNothingIsLost) {
  run_all({.sizes{40, 13, 5}, .backward = true, .start = 2 * kPage});
}

// Some of the records fit, in any order: records of 64, 48 and 32 bytes, and a LOST of 24.
TEST(NestedOutputTest, LossesAreExactInANearlyFullRing) {
  for (const bool backward : {false, true}) {
    for (const unsigned lost : {0u, 5u}) {
      for (std::uint64_t room = 8; room <= 160; room += 32) {
        SCOPED_TRACE(std::to_string(room) + " free, " + std::to_string(lost) + " lost");
        run_all({.sizes{52, 33, 17},
                 .backward = backward,
                 .room = room,
                 .lost = lost,
                 .start = 4 * kPage});
        if (HasFailure()) return;
      }
    }
  }
}

// The outer output is refused. The outputs that interrupted it must be published nevertheless.
TEST(NestedOutputTest, AnOutputInsideARefusedOneIsPublished) {
  run_all({.sizes{4000, 13, 5}, .room = 512});
  run_all({.sizes{4000, 3500, 5}, .room = 512});
}

// The wakeup that nobody makes (see check_flag()): unread data and no flag.
TEST(NestedOutputTest, AWakeupCanBeMissedAfterARefusedOutput) {
  TestRing<NestingCpu> ring;
  ring.cpu.barrier = [] {};
  ring.cpu.published = [](__u64) {};
  ring.cpu.interrupt = [&](std::size_t) { EXPECT_EQ(ring.output(4), 0); };
  ring.cpu.at = {kLosesWakeup, kNever, kNever};
  EXPECT_EQ(ring.output(5000), -ENOSPC);
  EXPECT_EQ(ring.head(), 16u);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  ring.cpu.steps = {};
  ring.cpu.at = {kLosesWakeup + 1, kNever, kNever};  // no wakeup is lost one step later
  EXPECT_EQ(ring.output(5000), -ENOSPC);
  EXPECT_EQ(perf_poll(*ring.event), kReadable);
}

TEST(NestedOutputTest, RefusedFourthLevelLeavesNoTrace) {
  TestRing ring;
  ring.cpu.bpf_trace_nest_level = 3;
  EXPECT_EQ(ring.output(4), -EBUSY);
  EXPECT_EQ(ring.output(4, ~__u64{0}), -EBUSY);
  EXPECT_EQ(ring.cpu.bpf_trace_nest_level, 3);
  EXPECT_EQ(ring.head(), 0u);
  EXPECT_EQ(ring.rb().lost, 0u);
  ring.cpu.bpf_trace_nest_level = 2;
  EXPECT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.cpu.bpf_trace_nest_level, 2);
}

}  // namespace
}  // namespace perfring::kernel
