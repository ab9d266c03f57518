#include "perfring/control_flow.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace perfring {
namespace {

// The whole of it works at compile time.
constexpr ControlFlow<char, int> halve(int value) {
  if (value % 2 != 0) return Break{'x'};
  return Continue{value / 2};
}
static_assert(halve(8).is_continue() && !halve(8).is_break());
static_assert(halve(8).continue_value() == 4);
static_assert(halve(7).is_break() && !halve(7).is_continue());
static_assert(halve(7).break_value() == 'x');

// No value at all: Break{} and Continue{}.
static_assert(ControlFlow<>{Break{}}.is_break());
static_assert(ControlFlow<>{Continue{}}.is_continue());

// A flow of Never cannot be made to break.
static_assert(!std::is_default_constructible_v<Never>);
static_assert(ControlFlow<Never, int>{Continue{3}}.continue_value() == 3);
static_assert(!std::is_constructible_v<ControlFlow<Never, int>, Break<int>>);

// Values convert, and only to their own side.
static_assert(std::is_constructible_v<ControlFlow<std::string, int>, Break<const char*>>);
static_assert(!std::is_constructible_v<ControlFlow<std::string, int>, Continue<const char*>>);
static_assert(std::is_constructible_v<ControlFlow<std::unique_ptr<int>, int>, Break<int*>>);
static_assert(std::is_constructible_v<ControlFlow<int, std::unique_ptr<int>>, Continue<int*>>);

// An explicit conversion does not happen in a callback's `return`: 5 is no vector of 5.
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

// Values are looked at where they are, and nothing is copied.
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

// The side that a flow does not carry: the program ends, whichever way it is asked for.
TEST(ControlFlowTest, TheOtherSidesValueEndsTheProgram) {
  Flow broken{Break{std::string{"stop"}}};
  Flow going{Continue{1}};
  EXPECT_DEATH(static_cast<void>(broken.continue_value()), "");
  EXPECT_DEATH(static_cast<void>(going.break_value()), "");
  EXPECT_DEATH(static_cast<void>(std::move(broken).continue_value()), "");
  EXPECT_DEATH(static_cast<void>(std::move(going).break_value()), "");
}

}  // namespace
}  // namespace perfring
