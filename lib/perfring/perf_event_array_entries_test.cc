// Buffers in no map, and the entries that set() and unset() change: aya's API since its pull
// request 1740, on a stand-in for the kernel.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "perfring/perf_buffer.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/perf_event_array_error.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeKernel;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = PerfBufferError::Kind;

// No map at all.
class PerfEventArrayBufferTest : public ::testing::Test {
 protected:
  FakeKernel kernel_;
};

TEST_F(PerfEventArrayBufferTest, OpenLeavesMapUntouched) {
  const auto buffer = PerfEventArrayBuffer::open(3, 4);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(kernel_.cpu, 3);
  EXPECT_EQ(FakeKernel::mapped_size(buffer->fd()), 5 * testing::page_size());
  const std::string fd = std::to_string(buffer->fd());
  EXPECT_THAT(kernel_.calls, ElementsAre("open " + fd, "enable " + fd + ", mapped"));
}

TEST_F(PerfEventArrayBufferTest, OpensLikePerfBuffer) {
  ASSERT_TRUE(PerfEventArrayBuffer::open(1, {.page_count = 1, .wakeup_watermark = 100}));
  EXPECT_EQ(kernel_.event.wakeup_watermark, 100U);
  EXPECT_EQ(FakeKernel::mapped_size(PerfEventArrayBuffer::open(1, {})->fd()),
            3 * testing::page_size());
  for (const int count : {0, 3, -4}) {
    const auto refused = PerfEventArrayBuffer::open(1, count);
    ASSERT_FALSE(refused.has_value()) << count;
    EXPECT_EQ(refused.error().kind, Kind::InvalidPageCount);
  }
  kernel_.open_errno = EMFILE;
  const auto refused = PerfEventArrayBuffer::open(7, 8);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, Kind::OpenError);
  EXPECT_EQ(refused.error().io_error, std::error_code(EMFILE, std::generic_category()));
  EXPECT_EQ(refused.error().cpu, 7U);
  EXPECT_EQ(refused.error().page_count, 8U);
}

TEST_F(PerfEventArrayBufferTest, DrainsAsAPerfBufferDoes) {
  auto buffer = PerfEventArrayBuffer::open(0, 1);
  ASSERT_TRUE(buffer.has_value());
  testing::emit(buffer->fd(), testing::page_size(), 1, 0);
  EXPECT_TRUE(buffer->readable());
  EXPECT_EQ(buffer->fold(0, [](int n, const PerfEvent&) { return n + 1; }), 1);
  EXPECT_FALSE(buffer->readable());
}

// The size is mandatory, as in aya.
template <class... Arguments>
concept OpensBy = requires(Arguments... arguments) { PerfEventArrayBuffer::open(arguments...); };
static_assert(OpensBy<unsigned, int>);
static_assert(OpensBy<unsigned, PerfBufferOptions>);
static_assert(!OpensBy<unsigned>);
static_assert(!OpensBy<unsigned, bool>);

// A map with kEntries entries.
class PerfEventArrayEntriesTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kEntries = 4;

  PerfEventArrayEntriesTest() : map_fd_{::open("/dev/null", O_RDONLY | O_CLOEXEC)} {
    kernel_.map_info.max_entries = kEntries;
    array_ = *PerfEventArray::from_fd(map_fd_);
    kernel_.calls.clear();
  }
  ~PerfEventArrayEntriesTest() override { ::close(map_fd_); }

  // Checks the last bpf(2) call: on this map, with BPF_ANY, and zeroes after the last field used.
  void expect_call_on_the_map() {
    EXPECT_EQ(static_cast<int>(kernel_.bpf.map_fd), array_->fd());
    EXPECT_EQ(kernel_.bpf.flags, 0U);
    const auto bytes = std::as_bytes(std::span(&kernel_.bpf, 1));
    const auto rest = bytes.subspan(offsetof(bpf_attr, flags) + sizeof(kernel_.bpf.flags));
    EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte each) { return each == std::byte{0}; }));
  }

  // The result of set and unset.
  using Changed = std::expected<void, PerfEventArrayError>;
  static void expect_call_failed(const Changed& changed, const std::string& call,
                                 const std::string& object, int error) {
    ASSERT_FALSE(changed.has_value());
    const auto* const failed = std::get_if<SyscallError>(&changed.error().cause);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->call, call);
    EXPECT_EQ(failed->object, object);
    EXPECT_EQ(failed->io_error, std::error_code(error, std::generic_category()));
  }
  static void expect_out_of_bounds(const Changed& changed, std::uint32_t index) {
    ASSERT_FALSE(changed.has_value()) << index;
    const auto* const error = std::get_if<OutOfBounds>(&changed.error().cause);
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->index, index);
    EXPECT_EQ(error->max_entries, kEntries);
  }

  FakeKernel kernel_;
  int map_fd_;
  std::optional<PerfEventArray> array_;
};

TEST_F(PerfEventArrayEntriesTest, SetMakesTheDescriptorThatEntry) {
  for (const std::uint32_t index : {0U, kEntries - 1}) {
    EXPECT_TRUE(array_->set(index, 40 + static_cast<int>(index)).has_value());
    EXPECT_EQ(kernel_.updated, (std::pair{index, 40 + index}));
    expect_call_on_the_map();
  }
  EXPECT_THAT(kernel_.calls, ElementsAre("update", "update"));
}

TEST_F(PerfEventArrayEntriesTest, UnsetEmptiesThatEntry) {
  for (const std::uint32_t index : {0U, kEntries - 1}) {
    EXPECT_TRUE(array_->unset(index).has_value());
    expect_call_on_the_map();
  }
  EXPECT_THAT(kernel_.calls, ElementsAre("delete 0", "delete 3"));
}

TEST_F(PerfEventArrayEntriesTest, RejectsOutOfBoundsIndexWithoutSyscall) {
  for (const std::uint32_t index : {kEntries, kEntries + 1, 0xffff'ffffU}) {
    expect_out_of_bounds(array_->set(index, 5), index);
    expect_out_of_bounds(array_->unset(index), index);
  }
  EXPECT_THAT(kernel_.calls, IsEmpty());
}

TEST_F(PerfEventArrayEntriesTest, APinnedMapHasItsBoundsToo) {
  array_ = *PerfEventArray::from_pin("/sys/fs/bpf/one");
  EXPECT_TRUE(array_->set(kEntries - 1, 5).has_value());
  expect_out_of_bounds(array_->set(kEntries, 5), kEntries);
}

TEST_F(PerfEventArrayEntriesTest, ErrorsNameFailedCallWithArguments) {
  kernel_.update_errno = EBADF;
  expect_call_failed(array_->set(2, -1), "bpf_map_update_elem", "index 2 with fd -1", EBADF);
  EXPECT_EQ(kernel_.updated.second, 0xffff'ffffU) << "the kernel is asked, and says so";
  kernel_.delete_errno = ENOENT;
  expect_call_failed(array_->unset(3), "bpf_map_delete_elem", "index 3", ENOENT);
}

TEST_F(PerfEventArrayEntriesTest, AMovedFromArrayHasNoEntries) {
  PerfEventArray taken{*std::move(array_)};
  expect_call_failed(array_->set(1, 5), "bpf_map_update_elem", "index 1", EBADF);
  expect_call_failed(array_->unset(1), "bpf_map_delete_elem", "index 1", EBADF);
  EXPECT_THAT(kernel_.calls, IsEmpty()) << "the kernel is not asked";
  EXPECT_TRUE(taken.set(1, 5).has_value());
  expect_out_of_bounds(taken.set(kEntries, 5), kEntries);
}

// Unlike a buffer that PerfEventArray::open returned: PerfEventArrayTest.ABufferKeepsTheMapOpen.
TEST_F(PerfEventArrayEntriesTest, ABufferThatWasSetDoesNotKeepTheMapOpen) {
  const auto buffer = PerfEventArrayBuffer::open(0, 1);
  ASSERT_TRUE(buffer.has_value());
  ASSERT_TRUE(array_->set(0, buffer->fd()).has_value());
  const int fd = array_->fd();
  array_.reset();
  EXPECT_FALSE(FakeKernel::is_open(fd));
  EXPECT_TRUE(FakeKernel::is_open(buffer->fd()));
}

TEST_F(PerfEventArrayEntriesTest, DestroyingABufferThatWasSetLeavesTheEntry) {
  {
    const auto buffer = PerfEventArrayBuffer::open(0, 1);
    ASSERT_TRUE(buffer.has_value());
    ASSERT_TRUE(array_->set(0, buffer->fd()).has_value());
  }
  EXPECT_THAT(kernel_.calls.back(), StartsWith("disable "));
  EXPECT_THAT(kernel_.calls, Not(Contains(StartsWith("delete"))));
}

// set() takes an int and nothing else: a CPU, or the buffer itself, does not compile.
template <class Event>
concept Sets = requires(PerfEventArray& array, std::uint32_t index, const Event& event) {
  { array.set(index, event) } -> std::same_as<std::expected<void, PerfEventArrayError>>;
};
static_assert(Sets<int>);
static_assert(!Sets<std::uint32_t>);
static_assert(!Sets<bool>);
static_assert(!Sets<long>);
static_assert(!Sets<PerfEventArrayBuffer>);

}  // namespace
}  // namespace perfring
