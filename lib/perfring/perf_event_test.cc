#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"

namespace perfring {
namespace {

// All of ControlFlow works at compile time.
constexpr ControlFlow<char, int> halve(int value) {
  if (value % 2 != 0) return Break{'x'};
  return Continue{value / 2};
}
static_assert(halve(8).is_continue() && !halve(8).is_break());
static_assert(halve(8).continue_value() == 4);
static_assert(halve(7).is_break() && !halve(7).is_continue());
static_assert(halve(7).break_value() == 'x');

TEST(ControlFlowTest, TheValueOfTheOtherSideEndsTheProgram) {
  const auto goes_on = halve(8);
  const auto broken = halve(7);
  EXPECT_DEATH(static_cast<void>(goes_on.break_value()), "");
  EXPECT_DEATH(static_cast<void>(broken.continue_value()), "");
  EXPECT_DEATH(static_cast<void>(halve(8).break_value()), "");
  EXPECT_DEATH(static_cast<void>(halve(7).continue_value()), "");
}

// Flows without a value: Break{} and Continue{}.
static_assert(ControlFlow<>{Break{}}.is_break());
static_assert(ControlFlow<>{Continue{}}.is_continue());

// A flow of Never cannot break.
static_assert(!std::is_default_constructible_v<Never>);
static_assert(ControlFlow<Never, int>{Continue{3}}.continue_value() == 3);
static_assert(!std::is_constructible_v<ControlFlow<Never, int>, Break<int>>);

// Values convert, but only to their own side.
static_assert(std::is_constructible_v<ControlFlow<std::string, int>, Break<const char*>>);
static_assert(!std::is_constructible_v<ControlFlow<std::string, int>, Continue<const char*>>);
static_assert(std::is_constructible_v<ControlFlow<std::unique_ptr<int>, int>, Break<int*>>);
static_assert(std::is_constructible_v<ControlFlow<int, std::unique_ptr<int>>, Continue<int*>>);

// An explicit conversion does not happen in a callback's `return`: 5 is not a vector of 5.
template <class From, class Flow>
constexpr bool returns = std::is_convertible_v<From, Flow>;
static_assert(returns<Break<const char*>, ControlFlow<std::string, int>>);
static_assert(returns<Continue<int>, ControlFlow<int, long>>);
static_assert(!returns<Continue<int>, ControlFlow<int, std::vector<int>>>);
static_assert(!returns<Break<int>, ControlFlow<std::vector<int>, int>>);
static_assert(!returns<Break<int*>, ControlFlow<std::unique_ptr<int>, int>>);
static_assert(!returns<Continue<int*>, ControlFlow<int, std::unique_ptr<int>>>);
static_assert(std::is_same_v<ControlFlow<char, int>::BreakType, char>);
static_assert(std::is_same_v<ControlFlow<char, int>::ContinueType, int>);

// Values are returned by reference, not copied.
using Flow = ControlFlow<std::string, int>;
static_assert(std::is_same_v<decltype(std::declval<Flow&>().break_value()), const std::string&>);
static_assert(std::is_same_v<decltype(std::declval<Flow&>().continue_value()), const int&>);
static_assert(std::is_same_v<decltype(std::declval<Flow>().break_value()), std::string&&>);
static_assert(std::is_same_v<decltype(std::declval<Flow>().continue_value()), int&&>);
static_assert(noexcept(std::declval<Flow&>().break_value(), std::declval<Flow>().break_value()));
static_assert(noexcept(std::declval<Flow&>().continue_value(),
                       std::declval<Flow>().continue_value()));
static_assert(noexcept(std::declval<Flow&>().is_break(), std::declval<Flow&>().is_continue()));

TEST(ControlFlowTest, MovesItsValueOut) {
  ControlFlow<std::unique_ptr<int>, std::unique_ptr<int>> broken{Break{std::make_unique<int>(3)}};
  const std::unique_ptr<int> value = std::move(broken).break_value();
  EXPECT_EQ(*value, 3);
  EXPECT_EQ(broken.break_value(), nullptr);
  ControlFlow<int, std::unique_ptr<int>> going{Continue{std::make_unique<int>(4)}};
  const std::unique_ptr<int> next = std::move(going).continue_value();
  EXPECT_EQ(*next, 4);
  EXPECT_EQ(going.continue_value(), nullptr);
}

// Reading the side that a flow does not carry ends the program, through an lvalue or an rvalue.
TEST(ControlFlowTest, TheOtherSidesValueEndsTheProgram) {
  Flow broken{Break{std::string{"stop"}}};
  Flow going{Continue{1}};
  EXPECT_DEATH(static_cast<void>(broken.continue_value()), "");
  EXPECT_DEATH(static_cast<void>(going.break_value()), "");
  EXPECT_DEATH(static_cast<void>(std::move(broken).continue_value()), "");
  EXPECT_DEATH(static_cast<void>(std::move(going).break_value()), "");
}

// Events are views: cheap to copy, and they own nothing.
static_assert(std::is_trivially_copyable_v<Sample> && std::is_trivially_copyable_v<Lost>);
static_assert(std::is_trivially_copyable_v<Malformed>);
static_assert(std::is_trivially_copyable_v<PerfEvent>);
static_assert(std::is_trivially_destructible_v<PerfEvent>);

// An event gives no write access to the ring's bytes.
static_assert(std::is_const_v<Bytes::element_type>);

static_assert(std::is_same_v<PerfEvent, std::variant<Sample, Lost, Malformed>>);

TEST(DefectTest, EachDefectHasAName) {
  EXPECT_EQ(std::string_view{to_string(Defect::BadSample)}, "BadSample");
  EXPECT_EQ(std::string_view{to_string(Defect::BadLost)}, "BadLost");
  EXPECT_EQ(std::string_view{to_string(Defect::UnexpectedType)}, "UnexpectedType");
  EXPECT_EQ(std::string_view{to_string(Defect::BadSize)}, "BadSize");
  EXPECT_EQ(std::string_view{to_string(Defect::BadPositions)}, "BadPositions");
  EXPECT_EQ(std::string_view{to_string(Defect{99})}, "unknown defect");
}

// The bytes 1 to 12, the first N of them in the head. Head and tail are apart, with room on both
// sides, so that a read or write past an end shows.
class SampleTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  static constexpr std::size_t kSize = 12;
  static constexpr std::byte kUntouched{0xee};

  SampleTest() {
    storage_.fill(std::byte{0xbb});
    for (std::size_t i = 0; i < kSize; ++i) {
      storage_[(i < GetParam() ? 8 : 32) + i] = std::byte(i + 1);
    }
    to_.fill(kUntouched);
  }

  Sample sample() const {
    return {Bytes{&storage_[8], GetParam()}, Bytes{&storage_[32 + GetParam()], kSize - GetParam()}};
  }
  // Whether to_ begins with the sample's first `count` bytes and is untouched after them.
  bool has_been_copied(std::size_t count) const {
    for (std::size_t i = 0; i < to_.size(); ++i) {
      if (to_[i] != (i < count ? std::byte(i + 1) : kUntouched)) return false;
    }
    return true;
  }

  std::array<std::byte, 64> storage_;
  std::array<std::byte, 16> to_;
};
INSTANTIATE_TEST_SUITE_P(BytesBeforeTheEnd, SampleTest, ::testing::Values(0, 1, 4, 11, 12));

TEST_P(SampleTest, SizeIsThatOfBothSlices) {
  EXPECT_EQ(sample().size(), kSize);
  EXPECT_EQ((Malformed{Defect::BadSize, sample().head, sample().tail}.size()), kSize);
  EXPECT_EQ(Sample{}.size(), 0U);
}

TEST_P(SampleTest, CopyToCopiesAsMuchAsFits) {
  for (const std::size_t room : {0U, 1U, 3U, 4U, 5U, 11U, 12U, 13U, 16U}) {
    const std::size_t count = std::min(room, kSize);
    to_.fill(kUntouched);
    EXPECT_EQ(sample().copy_to(std::span{to_}.first(room)), count);
    EXPECT_TRUE(has_been_copied(count)) << room;
    to_.fill(kUntouched);
    const Malformed malformed{Defect::BadSize, sample().head, sample().tail};
    EXPECT_EQ(malformed.copy_to(std::span{to_}.first(room)), count);
    EXPECT_TRUE(has_been_copied(count)) << room;
  }
}

TEST_P(SampleTest, CopyToCopiesNothingIfEitherSideIsEmpty) {
  EXPECT_EQ(sample().copy_to({}), 0U);
  EXPECT_EQ(Sample{}.copy_to(to_), 0U);
  EXPECT_EQ(Sample{}.copy_to({}), 0U);
  EXPECT_EQ(Malformed{}.copy_to(to_), 0U);
  EXPECT_TRUE(has_been_copied(0));
}

TEST_P(SampleTest, ContiguousCopiesOnlyWhatStraddles) {
  const Bytes all = sample().contiguous(to_);
  ASSERT_EQ(all.size(), kSize);
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_EQ(all[i], std::byte(i + 1));
  const bool straddles = GetParam() != 0 && GetParam() != kSize;
  EXPECT_EQ(all.data(), straddles
                            ? to_.data()
                            : (GetParam() == 0 ? sample().tail.data() : sample().head.data()));
  EXPECT_TRUE(has_been_copied(straddles ? kSize : 0));
}

TEST_P(SampleTest, ContiguousNeedsOnlySampleSizedScratch) {
  const bool straddles = GetParam() != 0 && GetParam() != kSize;
  EXPECT_EQ(sample().contiguous(std::span{to_}.first(kSize)).size(), kSize);
  to_.fill(kUntouched);
  EXPECT_EQ(sample().contiguous(std::span{to_}.first(kSize - 1)).size(), straddles ? 0 : kSize);
  EXPECT_EQ(sample().contiguous({}).size(), straddles ? 0 : kSize);
  EXPECT_TRUE(has_been_copied(0)) << "all or nothing";
  EXPECT_TRUE(Sample{}.contiguous(to_).empty());
}

struct Packed {
  std::uint32_t first;
  std::uint8_t second[8];
};
static_assert(sizeof(Packed) == 12);
struct OneMore {
  std::uint8_t bytes[13];
};

TEST_P(SampleTest, AsReturnsTheFirstBytesOfThePayload) {
  EXPECT_EQ(sample().as<std::uint8_t>(), 1);
  std::uint32_t word = 0;
  std::memcpy(&word, "\1\2\3\4", 4);
  EXPECT_EQ(sample().as<std::uint32_t>(), word);
  const auto packed = sample().as<Packed>();
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(packed->first, word);
  for (std::uint8_t i = 0; i < 8; ++i) EXPECT_EQ(packed->second[i], i + 5);
}

TEST_P(SampleTest, AsATypeLongerThanThePayloadReturnsNullopt) {
  EXPECT_TRUE(sample().as<Packed>().has_value());
  EXPECT_FALSE(sample().as<OneMore>().has_value());
  EXPECT_FALSE(Sample{}.as<std::uint8_t>().has_value());
}

// Whether as<T>() accepts a type is a constraint, which a caller can test.
template <class T>
concept As = requires(const Sample& sample) { sample.as<T>(); };
struct NotTrivial {
  ~NotTrivial() {}
  int n = 0;
};
static_assert(As<std::uint64_t> && As<Packed> && As<double> && As<Defect>);
static_assert(!As<NotTrivial> && !As<bool> && !As<const int> && !As<int[2]> && !As<int&>);
static_assert(!As<std::string_view&> && !As<void>);

TEST(OverloadedTest, TheCallbackThatTakesTheEventIsCalled) {
  const Overloaded kind{[](const Sample&) { return 1; }, [](const Lost&) { return 2; },
                        [](const auto&) { return 3; }};
  EXPECT_EQ(kind(Sample{}), 1);
  EXPECT_EQ(kind(Lost{}), 2);
  EXPECT_EQ(kind(Malformed{}), 3);
}

// copy_to() copies the head first: a `to` that overlaps the ring may change the tail before it is
// copied.
TEST_P(SampleTest, CopyToMayOverlapWhatItCopies) {
  const Sample before = sample();
  const std::span<std::byte> shifted{&storage_[9], kSize};  // one byte after the head's start
  auto expected = storage_;
  for (std::size_t i = 0; i < before.head.size(); ++i) expected[9 + i] = storage_[8 + i];
  const auto with_head = expected;
  for (std::size_t i = 0; i < before.tail.size(); ++i) {
    expected[9 + before.head.size() + i] = with_head[32 + before.head.size() + i];
  }
  EXPECT_EQ(before.copy_to(shifted), kSize);
  EXPECT_EQ(storage_, expected);
}

}  // namespace
}  // namespace perfring
