// try_fold, fold and for_each: the callbacks and values that they take, and what they return.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/operator_new.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using testing::FakeRing;
using testing::payload;

class RingFoldTest : public ::testing::Test {
 protected:
  RingFoldTest() {
    for (unsigned i = 0; i < 40; ++i) fake_.sample(payload(i < 30 ? 12 : 20, i));
    fake_.lost(7);
    fake_.raw_record(77, 16, {}, 16);
  }
  void rewind() { fake_.page().data_tail = kStart; }

  static constexpr std::uint64_t kStart = 65536 - 20 * 24 - 8;
  static constexpr int kEvents = 42;
  FakeRing fake_{65536, kStart};
  Ring<> ring_ = *Ring<>::over(fake_.page(), fake_.data());
};

TEST_F(RingFoldTest, FoldCarriesTheValueThroughEveryEvent) {
  const int count = ring_.fold(100, [](int value, const PerfEvent&) { return value + 1; });
  EXPECT_EQ(count, 100 + kEvents);
  EXPECT_EQ(ring_.fold(5, [](int, const PerfEvent&) { return 0; }), 5) << "nothing is left";
}

TEST_F(RingFoldTest, TheValueMayBeMoveOnly) {
  auto log = ring_.fold(std::make_unique<std::vector<std::size_t>>(),
                        [](std::unique_ptr<std::vector<std::size_t>> value, PerfEvent event) {
                          value->push_back(event.index());
                          return value;
                        });
  ASSERT_EQ(log->size(), static_cast<std::size_t>(kEvents));
  EXPECT_EQ(log->at(39), 0U);
  EXPECT_EQ(log->at(40), 1U);
  EXPECT_EQ(log->at(41), 2U);
}

TEST_F(RingFoldTest, BreakValueMayHaveItsOwnMoveOnlyType) {
  using Flow = ControlFlow<std::unique_ptr<std::string>, int>;
  const auto until = [](int stop) {
    return [stop](int count, const PerfEvent&) -> Flow {
      if (count == stop) return Break{std::make_unique<std::string>(std::to_string(count))};
      return Continue{count + 1};
    };
  };
  Flow flow = ring_.try_fold(0, until(17));
  ASSERT_TRUE(flow.is_break());
  EXPECT_FALSE(flow.is_continue());
  EXPECT_EQ(*flow.break_value(), "17");
  flow = ring_.try_fold(0, until(1000));
  ASSERT_TRUE(flow.is_continue());
  EXPECT_EQ(flow.continue_value(), kEvents - 18) << "the event that broke counts as consumed";
}

TEST_F(RingFoldTest, BreakIsDistinctFromContinueOfSameType) {
  using Flow = ControlFlow<int, int>;
  const Flow flow = ring_.try_fold(0, [](int count, const PerfEvent&) -> Flow {
    if (count == 3) return Break{count};
    return Continue{count + 1};
  });
  ASSERT_TRUE(flow.is_break());
  EXPECT_EQ(flow.break_value(), 3);
}

TEST_F(RingFoldTest, CallbacksMayReturnEarly) {
  int lost = 0;
  int delivered = 0;
  ring_.for_each([&](const PerfEvent& event) {
    ++delivered;
    if (!std::holds_alternative<Lost>(event)) return;
    ++lost;
  });
  EXPECT_EQ(delivered, kEvents);
  EXPECT_EQ(lost, 1);
}

// A callback that is neither copied nor moved: the caller keeps it.
struct Counter {
  Counter() = default;
  Counter(const Counter&) = delete;
  int count = 0;
  void operator()(const PerfEvent&) { ++count; }
};

TEST_F(RingFoldTest, CallbacksMayBeMutableConstOrNotCopyable) {
  Counter counter;
  ring_.for_each(counter);
  EXPECT_EQ(counter.count, kEvents);
  rewind();
  int count = 0;
  const auto constant = [&count](PerfEvent) { ++count; };
  ring_.for_each(constant);
  EXPECT_EQ(count, kEvents);
  rewind();
  int last = 0;
  ring_.for_each([n = 0, &last](PerfEvent) mutable { last = ++n; });
  EXPECT_EQ(last, kEvents);
}

// A value that is neither copied nor default-constructed, and is passed on by reference.
class Log {
 public:
  explicit Log(int first) : events_{first} {}
  Log(Log&&) = default;
  Log& operator=(Log&&) = default;
  void add(int event) { events_.push_back(event); }
  const std::vector<int>& events() const { return events_; }

 private:
  std::vector<int> events_;
};

TEST_F(RingFoldTest, TheValueMayBePassedThroughByReference) {
  const Log log = ring_.fold(Log{-1}, [](Log&& value, const PerfEvent& event) -> Log&& {
    value.add(static_cast<int>(event.index()));
    return std::move(value);
  });
  ASSERT_EQ(log.events().size(), 1 + static_cast<std::size_t>(kEvents));
  EXPECT_EQ(log.events().front(), -1);
  EXPECT_EQ(log.events().back(), 2);
}

TEST_F(RingFoldTest, TheResultOfFoldsCallbackConvertsToTheValue) {
  const long count = ring_.fold(1L << 30, [](long value, const PerfEvent& event) -> int {
    return value > kEvents ? 0 : static_cast<int>(value) + (event.index() == 0);
  });
  EXPECT_EQ(count, 39);
}

// A functor that counts and that nobody may copy: fold and try_fold must use the caller's own.
struct Counting {
  Counting() = default;
  Counting(const Counting&) = delete;
  int calls = 0;
  int operator()(int value, const PerfEvent&) { return ++calls, value + 2; }
};
struct CountingUntil {
  CountingUntil() = default;
  CountingUntil(const CountingUntil&) = delete;
  int calls = 0;
  ControlFlow<Never, int> operator()(int value, const PerfEvent&) {
    ++calls;
    return Continue{value + 3};
  }
};

TEST_F(RingFoldTest, FoldsUseCallersOwnFunctor) {
  Counting counting;
  EXPECT_EQ(ring_.fold(0, counting), 2 * kEvents);
  EXPECT_EQ(counting.calls, kEvents);
  rewind();
  CountingUntil until;
  EXPECT_EQ(ring_.try_fold(0, until).continue_value(), 3 * kEvents);
  EXPECT_EQ(until.calls, kEvents);
}

// fold and the like call even a temporary callback as an lvalue.
struct CalledAsItIs {
  int operator()(int value, const PerfEvent&) & { return value + 1; }
  int operator()(int value, const PerfEvent&) && = delete;
  void operator()(const PerfEvent&) & {}
  void operator()(const PerfEvent&) && = delete;
  ControlFlow<Never, long> operator()(long value, const PerfEvent&) & {
    return Continue{value + 1};
  }
  ControlFlow<Never, long> operator()(long value, const PerfEvent&) && = delete;
};

TEST_F(RingFoldTest, ACallbackThatIsATemporaryMayBeCalledManyTimes) {
  EXPECT_EQ(ring_.fold(0, CalledAsItIs{}), kEvents);
  rewind();
  EXPECT_EQ(ring_.try_fold(0L, CalledAsItIs{}).continue_value(), kEvents);
  rewind();
  ring_.for_each(CalledAsItIs{});
  EXPECT_FALSE(ring_.readable());
}

TEST_F(RingFoldTest, ExceptionPropagatesFromCallback) {
  const auto one = [] { return std::make_unique<int>(1); };
  using Value = std::unique_ptr<int>;
  EXPECT_THROW(static_cast<void>(ring_.fold(one(), [](Value, PerfEvent) -> Value { throw 1; })),
               int);
  EXPECT_THROW(static_cast<void>(ring_.try_fold(
                   one(), [](Value, PerfEvent) -> ControlFlow<int, Value> { throw 2L; })),
               long);
  EXPECT_THROW(ring_.for_each([](PerfEvent) { throw '3'; }), char);
  EXPECT_EQ(ring_.fold(0, [](int n, PerfEvent) { return n + 1; }), kEvents - 3);
}

TEST_F(RingFoldTest, ACallbackMayDrainAnotherRing) {
  FakeRing other{65536};
  for (unsigned i = 0; i < 100; ++i) other.sample(payload(12, i));
  Ring<> inner = *Ring<>::over(other.page(), other.data());
  using Flow = ControlFlow<Unit, int>;
  const int events = ring_.fold(0, [&](int outer, PerfEvent) {
    return outer + inner
                       .try_fold(0,
                                 [](int n, PerfEvent) -> Flow {
                                   if (n == 1) return Break{};
                                   return Continue{n + 1};
                                 })
                       .is_break();
  });
  EXPECT_EQ(events, kEvents) << "each took two of the other's";
  EXPECT_EQ(other.page().data_tail, 2 * 24 * static_cast<std::uint64_t>(kEvents));
}

TEST_F(RingFoldTest, ADrainAllocatesNothing) {
  std::size_t events = 0;
  const std::size_t before = testing::allocations;
  ring_.for_each([&](const PerfEvent&) { ++events; });
  rewind();
  static_cast<void>(ring_.try_fold(0, [](int n, const PerfEvent&) -> ControlFlow<int, int> {
    if (n == 35) return Break{n};
    return Continue{n + 1};
  }));
  rewind();
  fake_.page().data_tail += 4;  // bad positions
  events += ring_.fold(std::size_t{0}, [](std::size_t n, const PerfEvent&) { return n + 1; });
  EXPECT_EQ(testing::allocations, before);
  EXPECT_EQ(events, static_cast<std::size_t>(kEvents) + 1);
}

}  // namespace
}  // namespace perfring
