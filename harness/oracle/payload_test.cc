#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/oracle/checker.h"
#include "harness/oracle/hand_ring.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/payload.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {
namespace {

std::vector<std::byte> filled(const Payload& payload, std::size_t padding) {
  std::vector<std::byte> bytes(payload.length);
  fill(bytes, payload);
  bytes.resize(payload.length + padding, std::byte{0xee});
  return bytes;
}

Sample split(const std::vector<std::byte>& bytes, std::size_t at) {
  return {Bytes{bytes}.first(at), Bytes{bytes}.subspan(at)};
}

// K1: payload, raw, size.
TEST(OraclePayloadTest, SizesAreTheKernels) {
  const std::uint64_t table[][3] = {{0, 4, 16},         {4, 4, 16},           {5, 12, 24},
                                    {12, 12, 24},       {13, 20, 32},         {100, 100, 112},
                                    {4096, 4100, 4112}, {65516, 65516, 65528}};
  for (const auto& [length, raw, size] : table) {
    EXPECT_EQ(raw_size(length), raw);
    EXPECT_EQ(record_size(length), size);
  }
}

TEST(OraclePayloadTest, EveryLengthHoldsWhereverItIsSplit) {
  for (std::uint32_t length = 0; length < 70; ++length) {
    const Payload payload{1000 + length, 7, length};
    const auto bytes = filled(payload, static_cast<std::size_t>(raw_size(length)) - length);
    for (std::size_t at = 0; at <= bytes.size(); ++at) {
      EXPECT_TRUE(holds(split(bytes, at), payload)) << length << " split at " << at;
    }
  }
}

TEST(OraclePayloadTest, EveryChangedByteIsFoundButNotPadding) {
  for (const std::uint32_t length : {1U, 3U, 4U, 7U, 8U, 9U, 15U, 16U, 17U, 45U}) {
    const Payload payload{5, 2, length};
    const auto bytes = filled(payload, static_cast<std::size_t>(raw_size(length)) - length);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      auto changed = bytes;
      changed[i] ^= std::byte{1};
      for (std::size_t at = 0; at <= bytes.size(); ++at) {  // slices of any lengths
        EXPECT_EQ(holds(split(changed, at), payload), i >= length)
            << "byte " << i << " of " << length << ", split at " << at;
      }
    }
  }
}

TEST(OraclePayloadTest, AnotherIdentityHasOtherBytes) {
  std::set<std::string> all;
  const auto body = [](const std::vector<std::byte>& bytes) {
    return std::string{reinterpret_cast<const char*>(bytes.data()) + 16, 44};
  };
  for (std::uint64_t sequence = 0; sequence < 20; ++sequence) {
    for (std::uint32_t stream = 0; stream < 5; ++stream) {
      all.insert(body(filled({sequence, stream, 60}, 0)));
    }
  }
  for (std::uint32_t length = 61; length < 81; ++length) {
    all.insert(body(filled({0, 0, length}, 0)));
  }
  EXPECT_EQ(all.size(), 120U);
}

TEST(OraclePayloadTest, ARawSizeOfAnotherLengthDoesNotHold) {
  const Payload payload{5, 2, 44};
  EXPECT_FALSE(holds(split(filled(payload, 8), 10), payload));
}

TEST(OraclePayloadTest, ASampleClaimsThePayloadThatItHolds) {
  const Payload payload{0x1122334455667788, 0xaabbccdd, 21};
  const auto bytes = filled(payload, 7);
  for (std::size_t at = 0; at <= bytes.size(); ++at)
    EXPECT_EQ(claimed_payload(split(bytes, at)), payload);
  EXPECT_EQ(claimed_payload(split(filled({1, 2, 12}, 0), 3)), std::nullopt);
}

// Machines of one byte order write the same bytes: sequence, length, stream, then a body.
TEST(OraclePayloadTest, IdentityIsWrittenInGivenByteOrder) {
  const std::vector<int> little{2, 1, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0};
  const std::vector<int> big{1, 2, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 3};
  for (const auto& [order, head] :
       {std::pair{std::endian::little, little}, {std::endian::big, big}}) {
    std::vector<std::byte> bytes(20);
    fill(bytes, {0x0102, 0x03, 20}, order);
    for (std::size_t i = 0; i < head.size(); ++i) {
      EXPECT_EQ(std::to_integer<int>(bytes[i]), head[i]) << i;
    }
  }
}

// Returns the header field, raw size or type that a reader finds at ring position `at`. The payload
// starts at position 12, in the record that starts at 0.
std::uint64_t field(const std::vector<std::byte>& payload, std::size_t at, std::size_t size,
                    std::endian order) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t from_low = order == std::endian::little ? size - 1 - i : i;
    value = value << 8 | std::to_integer<std::uint64_t>(payload[at - 12 + from_low]);
  }
  return value;
}

// A consumer that walks through spilled payloads takes the same path on every machine.
TEST(OraclePayloadTest, PayloadsOfBothByteOrdersAreRecognized) {
  for (const std::uint32_t length : {20U, 24U, 400U}) {
    const Payload payload{0x0123456789abcdef, 0xfedcba98, length};
    std::vector<std::byte> little(length);
    std::vector<std::byte> big(length);
    fill(little, payload, std::endian::little);
    fill(big, payload, std::endian::big);
    EXPECT_NE(little, big);
    std::vector<std::byte> native(length);
    fill(native, payload);
    EXPECT_EQ(native, std::endian::native == std::endian::little ? little : big);
    for (std::size_t at = 12; at + 4 <= 12 + length; at += 4) {
      // Either 4 bytes (a type or a raw size), or 2 and 2 (misc and size).
      const std::size_t size = at % 8 == 0 ? 4 : 2;
      for (std::size_t i = at; i < at + 4; i += size) {
        EXPECT_EQ(field(little, i, size, std::endian::little),
                  field(big, i, size, std::endian::big))
            << size << " bytes at " << i << " of " << length;
      }
    }
  }
}

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
