#include "harness/oracle/stream_checker.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "harness/oracle/hand_ring.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/payload.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {
namespace {

// Hand-made payloads of 20 bytes in a ring.
class StreamCheckerTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kFirst = 40;

  Sample sample(std::uint64_t sequence, std::uint32_t stream = kFirst) {
    at_ += 32;
    const Sample bytes = ring_.slices(at_, 20);
    fill({ring_.data.data() + at_, 20}, {sequence, stream, 20});
    return bytes;
  }
  template <class... Event>
  void drain(StreamChecker& checker, const Event&... events) {
    checker.begin_drain();
    (checker.check_delivery(PerfEvent{events}), ...);
    ring_.page.data_tail += 32 * sizeof...(events);
    checker.end_drain();
  }
  static void expect(const StreamChecker& checker, Invariant invariant) {
    ASSERT_TRUE(checker.violation().has_value());
    EXPECT_STREQ(to_string(checker.violation()->invariant), to_string(invariant))
        << checker.violation()->message;
  }

  HandRing ring_;
  std::uint64_t at_ = 0;
  StreamChecker one_{ring_.page, ring_.data, kFirst};
  StreamChecker two_{ring_.page, ring_.data, kFirst, 2};
};

TEST_F(StreamCheckerTest, AFaultlessHistoryHasNoViolation) {
  drain(one_, sample(0), sample(1));
  drain(one_, Lost{2}, sample(4));
  one_.settle({.accepted = 3, .lost = 3}, 1);
  EXPECT_FALSE(one_.violation().has_value()) << one_.violation()->message;
  EXPECT_EQ(one_.received().delivered, 3U);
  EXPECT_EQ(one_.received().lost, 2U);
}

TEST_F(StreamCheckerTest, LossesAddUp) {
  drain(one_, sample(0), Lost{1}, sample(2), Lost{2}, sample(5));
  one_.settle({.accepted = 3, .lost = 3}, 0);
  EXPECT_FALSE(one_.violation().has_value()) << one_.violation()->message;
  EXPECT_EQ(one_.received().lost, 3U);
  EXPECT_EQ(one_.received().bytes, 5 * 32U);
}

TEST_F(StreamCheckerTest, EachStreamHasAnOrderOfItsOwn) {
  drain(two_, sample(0, kFirst + 1), sample(0), sample(1), sample(2, kFirst + 1), Lost{1});
  two_.settle({.accepted = 4, .lost = 1}, 0);
  EXPECT_FALSE(two_.violation().has_value()) << two_.violation()->message;
}

TEST_F(StreamCheckerTest, AMissingRecordViolatesNoLoss) {
  drain(one_, sample(0), sample(2));
  expect(one_, Invariant::no_loss);
}

TEST_F(StreamCheckerTest, ALostWithoutAMissingRecordViolatesNoLoss) {
  drain(one_, sample(0), Lost{1}, sample(1));
  expect(one_, Invariant::no_loss);
}

TEST_F(StreamCheckerTest, TheWritersTotalsAreCompared) {
  drain(two_, sample(0));
  StreamChecker more = two_;
  StreamChecker lost = two_;
  two_.settle({.accepted = 2}, 0);
  expect(two_, Invariant::no_loss);
  more.settle({.accepted = 0}, 0);
  expect(more, Invariant::no_invention);
  StreamChecker too_many = lost;
  lost.settle({.accepted = 1, .lost = 1}, 0);
  expect(lost, Invariant::no_loss);
  too_many.settle({.accepted = 1}, 1);
  expect(too_many, Invariant::no_loss);
}

TEST_F(StreamCheckerTest, ASampleOfAnUnknownStreamViolatesNoInvention) {
  drain(one_, sample(0, kFirst + 1));
  expect(one_, Invariant::no_invention);
}

TEST_F(StreamCheckerTest, SampleTooShortForStreamViolatesNoInvention) {
  drain(one_, ring_.slices(0, 12));
  expect(one_, Invariant::no_invention);
}

TEST_F(StreamCheckerTest, AChangedByteViolatesIntact) {
  const Sample changed = sample(0);
  ring_.data[static_cast<std::size_t>(at_) + 19] ^= std::byte{4};
  drain(one_, changed);
  expect(one_, Invariant::intact);
}

TEST_F(StreamCheckerTest, AMalformedRecordViolatesIntact) {
  drain(one_, Malformed{Defect::BadSize, ring_.slices(0, 16).head, {}});
  expect(one_, Invariant::intact);
  EXPECT_EQ(one_.received().malformed, 1U);
}

TEST_F(StreamCheckerTest, ARecordTwiceViolatesOnce) {
  drain(one_, sample(0), sample(0));
  expect(one_, Invariant::once);
  one_.settle({.accepted = 7}, 0);
  expect(one_, Invariant::once);  // the first violation is final
}

TEST_F(StreamCheckerTest, AnEarlierRecordViolatesOrder) {
  drain(one_, sample(0), sample(1), sample(0));
  expect(one_, Invariant::order);
}

// These numbers become small, or equal, when truncated to 32 bits.
TEST_F(StreamCheckerTest, NumbersHave64Bits) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 32;
  drain(one_, Lost{kFar}, sample(kFar), sample(kFar + 1));
  StreamChecker fewer = one_;
  one_.settle({.accepted = 2, .lost = kFar + 1}, 1);
  EXPECT_FALSE(one_.violation().has_value()) << one_.violation()->message;
  fewer.settle({.accepted = kFar + 2, .lost = kFar}, 0);
  expect(fewer, Invariant::no_loss);
  const auto found = [this](Invariant invariant, const auto&... events) {
    ring_.page.data_tail = 0;
    StreamChecker checker{ring_.page, ring_.data, kFirst};
    drain(checker, events...);
    expect(checker, invariant);
  };
  found(Invariant::order, Lost{kFar + 1}, sample(kFar + 1), sample(2));
  found(Invariant::order, Lost{kFar + 1}, sample(kFar + 1), sample(1));  // not a duplicate
  found(Invariant::no_loss, sample(0), sample(kFar + 1));
  found(Invariant::no_loss, Lost{kFar}, sample(0));
  ring_.page.data_tail = 0;
  drain(two_, sample(0));
  two_.settle({.accepted = 1, .lost = kFar}, 0);
  expect(two_, Invariant::no_loss);
}

TEST_F(StreamCheckerTest, StreamsBesideItsOwnAreUnknown) {
  for (const std::uint32_t stream : {0U, kFirst - 1, kFirst + 2, ~0U}) {
    ring_.page.data_tail = 0;
    StreamChecker checker{ring_.page, ring_.data, kFirst, 2};
    drain(checker, sample(0, stream));
    expect(checker, Invariant::no_invention);
  }
}

TEST_F(StreamCheckerTest, ATailThatMovesDuringADrainViolatesTailHonest) {
  one_.begin_drain();
  ring_.page.data_tail = 32;
  one_.check_delivery(ring_.slices(0, 12));  // too short to name a payload, but the tail is
                                             // reported first
  one_.settle({.accepted = 7}, 0);
  expect(one_, Invariant::tail_honest);
}

}  // namespace
}  // namespace perfring::oracle
