// Whose a PerfBuffer is: moved, assigned, inherited by a forked child, handed to another thread. On
// a stand-in for the kernel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "perfring/perf_buffer.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using testing::emit;
using testing::FakeKernel;

class PerfBufferLifeTest : public ::testing::Test {
 protected:
  const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  FakeKernel kernel_;
};

// A forked child's copy shares the event with the parent's, and has no mapping of the ring (K36 of
// the harness's facts): what lies at its address there is somebody else's.
TEST_F(PerfBufferLifeTest, AForkedChildsCopyLeavesTheParentsEventAndTheMemoryAlone) {
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  const int fd = buffer->fd();
  kernel_.calls.clear();
  const pid_t child = ::fork();
  if (child == 0) {
    {
      const PerfBuffer taken = *std::move(buffer);
    }
    const bool own = PerfBuffer::open(0).has_value();  // what it opens itself is its own
    ::_exit((kernel_.calls.size() == 3 && own ? 0 : 1) + (FakeKernel::is_open(fd) ? 2 : 0) +
            (FakeKernel::mappings() == 1 ? 0 : 4));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: told the kernel, 2: left it open, 4: unmapped memory";
  buffer = PerfBuffer::open(1);
  EXPECT_EQ(kernel_.calls.at(2), "disable " + std::to_string(fd) + ", mapped");
}

// The child has nothing mapped there, or something else: it must not go on, and should say why.
TEST_F(PerfBufferLifeTest, ADrainInAForkedChildEndsItWithAnAssertion) {
#ifdef NDEBUG
  GTEST_SKIP() << "without assertions it is a SIGSEGV, on a kernel's mapping";
#else
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  const std::string said = "a forked child has no mapping of the ring";
  const auto ignore = [](const PerfEvent&) {};
  EXPECT_DEATH(buffer->for_each(ignore), said);
  EXPECT_DEATH(buffer->for_each_while([](const PerfEvent&) { return true; }), said);
  EXPECT_DEATH(static_cast<void>(buffer->fold(0, [](int n, const PerfEvent&) { return n; })), said);
  EXPECT_DEATH(static_cast<void>(buffer->try_fold(
                   Unit{}, [](Unit, const PerfEvent&) -> ControlFlow<> { return Continue{}; })),
               said);
  EXPECT_DEATH(static_cast<void>(std::as_const(*buffer).readable()), said);
  // A drain of an empty buffer, or of the child's own, does not end it.
  const auto drains_its_own = [&] {
    const PerfBuffer taken = *std::move(buffer);
    buffer->for_each(ignore);
    PerfBuffer::open(1)->for_each(ignore);
    ::_exit(7);
  };
  EXPECT_EXIT(drains_its_own(), ::testing::ExitedWithCode(7), "");
  buffer->for_each(ignore);
#endif
}

// A child that opens a buffer of its own in the place of the inherited one: what it opened is its
// to disable and unmap, what it inherited is the parent's.
TEST_F(PerfBufferLifeTest, AForkedChildMayAssignItsOwnBufferOverTheInheritedOne) {
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  const int inherited = buffer->fd();
  kernel_.calls.clear();
  const pid_t child = ::fork();
  if (child == 0) {
    int failed = 0;
    int own = -1;
    {
      PerfBuffer assigned = *std::move(buffer);
      assigned = *PerfBuffer::open(1);
      own = assigned.fd();
      failed |= kernel_.calls.size() == 2 ? 0 : 1;  // "open", "enable"
      failed |= FakeKernel::is_open(inherited) ? 2 : 0;
      failed |= FakeKernel::mappings() == 2 ? 0 : 4;
    }
    const std::string number = std::to_string(own);
    failed |=
        kernel_.calls.size() == 3 && kernel_.calls[2] == "disable " + number + ", mapped" ? 0 : 8;
    failed |= FakeKernel::is_open(own) ? 16 : 0;
    failed |= FakeKernel::mappings() == 1 ? 0 : 32;
    ::_exit(failed);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0)
      << "the sum of 1: disabled the parent's event, 2: left it open, 4: unmapped the parent's "
         "ring, "
         "8: did not disable its own, 16: left its own open, 32: left its own ring mapped";
  EXPECT_TRUE(FakeKernel::is_mapped(inherited));
}

// One thread at a time, but not always the same one.
TEST_F(PerfBufferLifeTest, ABufferMayBeDestroyedOnAnotherThreadThanItWasOpenedOn) {
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  const int fd = buffer->fd();
  kernel_.calls.clear();
  std::thread{[taken = *std::move(buffer)]() mutable {
    const PerfBuffer last = std::move(taken);
  }}.join();
  EXPECT_THAT(kernel_.calls, ElementsAre("disable " + std::to_string(fd) + ", mapped"));
  EXPECT_FALSE(FakeKernel::is_open(fd));
  EXPECT_EQ(FakeKernel::mappings(), 0);
}

TEST_F(PerfBufferLifeTest, MovedFromItIsEmptyForEver) {
  auto first = PerfBuffer::open(0);
  ASSERT_TRUE(first.has_value());
  const int fd = first->fd();
  emit(fd, kPage, 2, 0);
  {
    PerfBuffer second{*std::move(first)};
    EXPECT_EQ(second.fd(), fd);
    EXPECT_TRUE(second.readable());
    EXPECT_EQ(first->fd(), -1);
    EXPECT_FALSE(first->readable());
    first->for_each([](const PerfEvent&) { FAIL(); });
    EXPECT_TRUE(second.readable()) << "draining the empty one takes nothing";
    EXPECT_EQ(kernel_.calls.size(), 2U) << "nothing is disabled by a move";
  }
  EXPECT_EQ(first->fd(), -1);
  EXPECT_FALSE(first->readable());
  first = PerfBuffer::open(0);
  EXPECT_GE(first->fd(), 0);
}

TEST_F(PerfBufferLifeTest, AssignedToItGivesUpWhatItHeld) {
  auto first = PerfBuffer::open(0);
  auto second = PerfBuffer::open(1);
  ASSERT_TRUE(first.has_value() && second.has_value());
  const int old = first->fd();
  const int kept = second->fd();
  emit(kept, kPage, 2, 0);
  kernel_.calls.clear();
  *first = *std::move(second);
  EXPECT_THAT(kernel_.calls, ElementsAre("disable " + std::to_string(old) + ", mapped"));
  EXPECT_FALSE(FakeKernel::is_open(old));
  EXPECT_EQ(FakeKernel::mappings(), 1);
  EXPECT_EQ(first->fd(), kept);
  EXPECT_TRUE(first->readable());
  EXPECT_EQ(second->fd(), -1);
  EXPECT_FALSE(second->readable());
  PerfBuffer& same = *first;
  *first = std::move(same);
  EXPECT_EQ(first->fd(), kept) << "to itself";
  EXPECT_TRUE(first->readable());
  EXPECT_TRUE(FakeKernel::is_open(kept));
}

}  // namespace
}  // namespace perfring
