// Uses of RingSet and Waiter that the types allow but nobody intends.

#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array_error.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/rings_error.h"
#include "perfring/testing/fake_set.h"
#include "perfring/wait/waiter.h"

namespace perfring {
namespace {

using ::testing::ExitedWithCode;
using testing::FakeSetTest;
using ::testing::SizeIs;

class RingSetMisuseTest : public FakeSetTest {
 protected:
  testing::Collect collected_;
};

TEST_F(RingSetMisuseTest, ARingIndexOutOfRangeEndsTheProgram) {
  const RingSet set = open();
  EXPECT_EQ(set.cpu(1), 1U);
  EXPECT_DEATH(static_cast<void>(set.cpu(2)), "");
  EXPECT_DEATH(static_cast<void>(set.cpu(~std::size_t{0})), "");
}

TEST_F(RingSetMisuseTest, ANullPointerToAFunctionEndsTheProgram) {
  void (*const none)(std::uint32_t, const PerfEvent&) = nullptr;
  void (*const no_ordered)(std::uint32_t, const Ordered&) = nullptr;
  std::uint64_t (*const no_key)(const Sample&) = nullptr;
  // The forked child calls each function on a new, empty set: using an inherited set ends it as
  // well.
  const auto call = [&](auto function) {
    RingSet set = open();
    static_cast<void>(function(set));
  };
  call([&](RingSet& set) { return set.drain(collected_); });
  EXPECT_DEATH(call([&](RingSet& set) { return set.drain(none); }), "");
  EXPECT_DEATH(call([&](RingSet& set) { return set.drain({.events = 0}, none); }), "");
  EXPECT_DEATH(call([&](RingSet& set) { return set.drain_fullest({}, none); }), "");
  EXPECT_DEATH(call([&](RingSet& set) { return set.merge(KeyAt{}, {}, no_ordered); }), "");
  EXPECT_DEATH(call([&](RingSet& set) { return set.merge(no_key, {}, collected_); }), "");
  // The program also ends where no ring would be read.
  constexpr auto kPast = RingSet::Clock::time_point::min();
  EXPECT_DEATH(
      call([&](RingSet& set) { return set.merge(no_key, {.deadline = kPast}, collected_); }), "");
  EXPECT_DEATH(call([&](RingSet& set) {
                 const RingSet moved{std::move(set)};
                 return set.flush(Flush::Complete, no_key, collected_);
               }),
               "");
  EXPECT_DEATH(call([&](RingSet& set) { return set.flush(Flush::Visible, none); }), "");
  EXPECT_DEATH(call([&](RingSet& set) { return set.flush(Flush::Visible, KeyAt{}, no_ordered); }),
               "");
  EXPECT_DEATH(call([&](RingSet& set) { return set.flush(Flush::Visible, no_key, collected_); }),
               "");
}

TEST_F(RingSetMisuseTest, AFlushOfAnUnknownSortIsAVisibleFlush) {
  RingSet set = open();
  write(1, 3);
  calls();
  EXPECT_EQ(set.flush(Flush{99}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(1));
  EXPECT_THAT(calls(), SizeIs(0)) << "no program is waited for";
}

TEST_F(RingSetMisuseTest, ARoundInAForkedChildEndsItWithAnAssertion) {
#ifdef NDEBUG
  GTEST_SKIP() << "without assertions it is a SIGSEGV, on a kernel's mapping";
#else
  RingSet set = open();
  write(0, 1);
  const std::string message = "a forked child has no mapping of the rings";
  EXPECT_DEATH(set.drain(collected_), message);
  EXPECT_DEATH(set.drain_fullest({}, collected_), message);
  EXPECT_DEATH(set.merge(KeyAt{}, {}, collected_), message);
  EXPECT_DEATH(static_cast<void>(set.flush(Flush::Visible, collected_)), message);
  EXPECT_DEATH(static_cast<void>(set.flush(Flush::Visible, KeyAt{}, collected_)), message);
  // A set that the child has opened is its own.
  const auto drains_its_own = [&] {
    RingSet own = open();
    ::_exit(own.drain(collected_) == DrainEnd::Drained ? 7 : 1);
  };
  EXPECT_EXIT(drains_its_own(), ExitedWithCode(7), "");
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(1));
#endif
}

TEST_F(RingSetMisuseTest, MoveAssignmentToItselfChangesNothing) {
  RingSet set = open();
  write(0, 1);
  calls();
  RingSet& same = set;
  set = std::move(same);
  EXPECT_THAT(calls(), SizeIs(0));
  ASSERT_EQ(set.rings(), 2U);
  EXPECT_EQ(set.cpu(1), 1U);
  EXPECT_EQ(set.drain(collected_), DrainEnd::Drained);
  write(1, 3);
  EXPECT_EQ(set.flush(Flush::Visible, KeyAt{}, collected_), DrainEnd::Drained);
  EXPECT_THAT(collected_.keys, SizeIs(2));
}

TEST(RingsErrorMisuseTest, AHandMadeErrorMayNameNoCall) {
  const RingsError error{SyscallError{nullptr, "X", std::error_code{EIO, std::generic_category()}}};
  const std::string message = std::generic_category().message(EIO);
  EXPECT_EQ(error.message(), "`a system call` of X failed: " + message);
  EXPECT_EQ(error.explain(), "asked for: a system call of X\nthe system said: " + message +
                                 "\nto change: see errno(3) for this error");
}

TEST(WaiterMisuseTest, ALongestWaitOfYearsIsAnHour) {
  Waiter waiter = Waiter::create(std::chrono::nanoseconds::max()).value();
  static_cast<void>(waiter.poll());
  const auto now = Waiter::Clock::now();
  EXPECT_GT(waiter.next_deadline(), now + std::chrono::minutes{59});
  EXPECT_LE(waiter.next_deadline(), now + std::chrono::hours{1});
}

TEST(WaiterMisuseTest, MoveAssignmentToItselfChangesNothing) {
  Waiter waiter = Waiter::create().value();
  const int fd = waiter.fd();
  Waiter& same = waiter;
  waiter = std::move(same);
  EXPECT_EQ(waiter.fd(), fd);
  EXPECT_FALSE(waiter.is_stopped());
  EXPECT_EQ(waiter.poll(), Woken::Report);
}

TEST(WaiterMisuseTest, AForkedChildsCopyIsTheSameEpoll) {
  Waiter waiter = Waiter::create(std::chrono::seconds{10}).value();
  static_cast<void>(waiter.poll());
  const auto stop_the_copy = [&] {
    waiter.stop();
    ::_exit(7);
  };
  EXPECT_EXIT(stop_the_copy(), ::testing::ExitedWithCode(7), "");
  EXPECT_EQ(waiter.wait(), Woken::Stop);
  EXPECT_TRUE(waiter.is_stopped());
}

}  // namespace
}  // namespace perfring
