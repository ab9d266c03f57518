// The ownership of a PerfBuffer (moved, assigned, inherited by a forked child, handed to another
// thread), and the size of its ring in pages. Runs on a stand-in for the kernel, with pages of any
// size.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <unistd.h>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "perfring/control_flow.h"
#include "perfring/perf_buffer.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using testing::emit;
using testing::FakeKernel;

class PerfBufferLifeTest : public ::testing::Test {
 protected:
  const std::size_t kPage = testing::page_size();
  FakeKernel kernel_;
};

// A forked child's copy shares the event with the parent's, and has no mapping of the ring (K36 of
// the harness's facts): other memory may be mapped at its address there.
TEST_F(PerfBufferLifeTest, ForkedCopyLeavesParentsBufferAlone) {
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  const int fd = buffer->fd();
  kernel_.calls.clear();
  // Exits with 7, plus 8 if it told the kernel, 16 if it left it open, 32 if it unmapped memory.
  const auto destroy_the_copy = [&] {
    {
      const PerfBuffer taken = *std::move(buffer);
    }
    const bool own = PerfBuffer::open(0).has_value();  // a buffer that the child opens is its own
    ::_exit(7 + (kernel_.calls.size() == 3 && own ? 0 : 8) + (FakeKernel::is_open(fd) ? 16 : 0) +
            (FakeKernel::mappings() == 1 ? 0 : 32));
  };
  EXPECT_EXIT(destroy_the_copy(), ::testing::ExitedWithCode(7), "");
  buffer = PerfBuffer::open(1);
  EXPECT_EQ(kernel_.calls.at(2), "disable " + std::to_string(fd) + ", mapped");
}

// The child has nothing mapped there, or something else: it must stop, and should say why.
TEST_F(PerfBufferLifeTest, ADrainInAForkedChildEndsItWithAnAssertion) {
#ifdef NDEBUG
  GTEST_SKIP() << "without assertions it is a SIGSEGV, on a kernel's mapping";
#else
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  const std::string message = "a forked child has no mapping of the ring";
  const auto ignore = [](const PerfEvent&) {};
  EXPECT_DEATH(buffer->for_each(ignore), message);
  EXPECT_DEATH(buffer->for_each_while([](const PerfEvent&) { return true; }), message);
  EXPECT_DEATH(static_cast<void>(buffer->fold(0, [](int n, const PerfEvent&) { return n; })),
               message);
  EXPECT_DEATH(static_cast<void>(buffer->try_fold(
                   Unit{}, [](Unit, const PerfEvent&) -> ControlFlow<> { return Continue{}; })),
               message);
  EXPECT_DEATH(static_cast<void>(std::as_const(*buffer).readable()), message);
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

// A child that opens a buffer of its own and assigns it over the inherited one must disable and
// unmap its own, and leave the parent's alone.
TEST_F(PerfBufferLifeTest, ForkedChildMayReplaceInheritedBuffer) {
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  const int inherited = buffer->fd();
  kernel_.calls.clear();
  // Exits with 64, plus 1 if it disabled the parent's event, 2 if it left it open, 4 if it unmapped
  // the parent's ring, 8 if it did not disable its own event, 16 if it left its own open, 32 if it
  // left its own ring mapped.
  const auto assign_over_the_copy = [&] {
    int failed = 64;
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
  };
  EXPECT_EXIT(assign_over_the_copy(), ::testing::ExitedWithCode(64), "");
  EXPECT_TRUE(FakeKernel::is_mapped(inherited));
}

// One thread at a time, but not always the same one.
TEST_F(PerfBufferLifeTest, MayBeDestroyedOnAnotherThread) {
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

TEST_F(PerfBufferLifeTest, AMovedFromBufferIsEmptyForEver) {
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

TEST_F(PerfBufferLifeTest, MoveAssignmentToItselfChangesNothing) {
  PerfBuffer buffer = PerfBuffer::open(0).value();
  const int fd = buffer.fd();
  emit(fd, kPage, 2, 0);
  PerfBuffer& same = buffer;
  buffer = std::move(same);
  EXPECT_EQ(buffer.fd(), fd);
  EXPECT_EQ(buffer.fold(0, [](int n, const PerfEvent&) { return n + 1; }), 1);
  EXPECT_EQ(kernel_.calls.size(), 2U) << "nothing is disabled";
}

TEST_F(PerfBufferLifeTest, MoveAssignmentReleasesTheOldBuffer) {
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

using Kind = PerfBufferError::Kind;

// Not all machines have pages of 4 KiB, and the size of a mapping is a number of pages.
class PerfBufferPageSizeTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  PerfBufferPageSizeTest() { kernel_.page_size = GetParam(); }
  FakeKernel kernel_;
};

TEST_P(PerfBufferPageSizeTest, ThePagesAreTheMachines) {
  const std::size_t page = GetParam();
  auto buffer = PerfBuffer::open(0, {.page_count = 2, .wakeup_watermark = 0xffff'ffff});
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(kernel_.event.wakeup_watermark, 2 * page);
  EXPECT_EQ(FakeKernel::mapped_size(buffer->fd()), 3 * page);
  const std::uint64_t tail = 2 * page - 8;  // the record straddles the end
  ASSERT_EQ(::pwrite(buffer->fd(), &tail, 8, offsetof(perf_event_mmap_page, data_tail)), 8);
  emit(buffer->fd(), page, 2, tail);
  EXPECT_EQ(buffer->fold(0, [](int n, const PerfEvent& event) { return n + (event.index() == 0); }),
            1);
  std::uint64_t committed = 0;
  ASSERT_EQ(::pread(buffer->fd(), &committed, 8, offsetof(perf_event_mmap_page, data_tail)), 8);
  EXPECT_EQ(committed, tail + 16);
}

TEST_P(PerfBufferPageSizeTest, TwoGibibytesAreTheMostInAnyPages) {
  const std::size_t most = (std::size_t{1} << 31) / GetParam();
  const auto all = PerfBuffer::open(0, most);  // 32 bits may have no room for it
  EXPECT_TRUE(all || all.error().kind == Kind::MMapError);
  const auto more = PerfBuffer::open(0, 2 * most);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().kind, Kind::InvalidPageCount);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PerfBufferPageSizeTest, ::testing::Values(4096, 16384, 65536));

class PerfBufferPageCountTest : public ::testing::Test {
 protected:
  static std::size_t page_shift() {
    return static_cast<std::size_t>(std::countr_zero(testing::page_size()));
  }
  FakeKernel kernel_;
};

TEST_F(PerfBufferPageCountTest, PageCountsAreCheckedBeforeAnythingIsOpened) {
  for (const std::size_t count : {0U, 3U, 5U, 6U, 1023U}) {
    const auto buffer = PerfBuffer::open(2, count);
    ASSERT_FALSE(buffer.has_value()) << count;
    EXPECT_EQ(buffer.error().kind, Kind::InvalidPageCount);
    EXPECT_EQ(buffer.error().page_count, count);
    EXPECT_EQ(buffer.error().cpu, 2U);
    EXPECT_FALSE(buffer.error().io_error);
  }
  EXPECT_THAT(kernel_.calls, ElementsAre());
  // 2 GiB are not too many (the file is shorter, but nobody touches it).
  EXPECT_TRUE(PerfBuffer::open(2, (std::size_t{1} << 31) / testing::page_size()).has_value());
}

// The size in bytes of these counts overflows a size_t: some of the products are 0, or a power of
// two that would fit.
TEST_F(PerfBufferPageCountTest, APageCountWhoseSizeOverflowsIsRefused) {
  constexpr auto bits = static_cast<std::size_t>(std::numeric_limits<std::size_t>::digits);
  for (std::size_t bit = 32 - page_shift(); bit < bits; ++bit) {
    const auto buffer = PerfBuffer::open(0, std::size_t{1} << bit);
    ASSERT_FALSE(buffer.has_value()) << "2^" << bit;
    EXPECT_EQ(buffer.error().kind, Kind::InvalidPageCount) << "2^" << bit;
  }
  EXPECT_THAT(kernel_.calls, ElementsAre());
}

}  // namespace
}  // namespace perfring
