// The size of a PerfBuffer's ring in pages, on a stand-in for the kernel, whose pages may be of any
// size.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "perfring/perf_buffer.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using testing::emit;
using testing::FakeKernel;
using Kind = PerfBufferError::Kind;

// Not all machines have pages of 4 KiB, and the mapping is counted in pages.
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
  static std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  static std::size_t page_shift() {
    return static_cast<std::size_t>(std::countr_zero(page_size()));
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
  EXPECT_TRUE(PerfBuffer::open(2, (std::size_t{1} << 31) / page_size()).has_value());
}

// Counts that the size in bytes, a size_t, cannot hold: some of these products are 0, or a power of
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
