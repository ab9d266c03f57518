// A PerfEventArray on a stand-in for the kernel: its system calls, and how long it keeps the map.

#include "perfring/perf_event_array.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using testing::FakeKernel;

class PerfEventArrayTest : public ::testing::Test {
 protected:
  PerfEventArrayTest() : map_fd_{::open("/dev/null", O_RDONLY | O_CLOEXEC)} {}
  ~PerfEventArrayTest() override { ::close(map_fd_); }

  // The kernel refuses bytes that are not zero after the fields that it knows.
  void expect_zeroes_after(std::size_t used) {
    ASSERT_EQ(kernel_.bpf_size, sizeof(bpf_attr));
    const auto bytes = std::as_bytes(std::span(&kernel_.bpf, 1)).subspan(used);
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; }));
  }

  FakeKernel kernel_;
  int map_fd_;
};

TEST_F(PerfEventArrayTest, FromFdHoldsASecondDescriptorOfTheMap) {
  int fd = -1;
  {
    const auto array = PerfEventArray::from_fd(map_fd_);
    ASSERT_TRUE(array.has_value());
    fd = array->fd();
    EXPECT_NE(fd, map_fd_);
    EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(static_cast<int>(kernel_.bpf.info.bpf_fd), fd);
    expect_zeroes_after(offsetof(bpf_attr, info.info) + 8);
  }
  EXPECT_FALSE(FakeKernel::is_open(fd));
  EXPECT_TRUE(FakeKernel::is_open(map_fd_));
}

TEST_F(PerfEventArrayTest, RefusesAnotherTypeOfMap) {
  kernel_.map_info.type = BPF_MAP_TYPE_RINGBUF;
  const auto array = PerfEventArray::from_fd(map_fd_);
  ASSERT_FALSE(array.has_value());
  const auto* error = std::get_if<InvalidMapType>(&array.error().cause);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->map_type, static_cast<std::uint32_t>(BPF_MAP_TYPE_RINGBUF));
  EXPECT_FALSE(PerfEventArray::from_pin("/sys/fs/bpf/pin").has_value());
}

// One owner, as in aya; a buffer shares the map's open file, not the array.
static_assert(!std::is_copy_constructible_v<PerfEventArray>);
static_assert(!std::is_copy_assignable_v<PerfEventArray>);
static_assert(std::is_nothrow_move_constructible_v<PerfEventArray>);
static_assert(std::is_nothrow_move_assignable_v<PerfEventArray>);

TEST_F(PerfEventArrayTest, MovedFromArrayHasNoMap) {
  auto first = PerfEventArray::from_fd(map_fd_);
  ASSERT_TRUE(first.has_value());
  const int fd = first->fd();
  {
    PerfEventArray second{*std::move(first)};
    EXPECT_EQ(second.fd(), fd);
    kernel_.calls.clear();
    EXPECT_EQ(first->fd(), -1);
    const auto buffer = first->open(3, 4);
    ASSERT_FALSE(buffer.has_value());
    const auto error = std::get<PerfBufferError>(buffer.error().cause);
    EXPECT_EQ(error.kind, PerfBufferError::Kind::IOError);
    EXPECT_EQ(error.io_error, std::error_code(EBADF, std::generic_category()));
    EXPECT_EQ(error.cpu, 3U);
    EXPECT_EQ(error.page_count, 4U);
    const auto pinned = first->pin("/sys/fs/bpf/one");
    ASSERT_FALSE(pinned.has_value());
    EXPECT_EQ(std::get<SyscallError>(pinned.error().cause).io_error,
              std::error_code(EBADF, std::generic_category()));
    EXPECT_THAT(kernel_.calls, ElementsAre()) << "the kernel is not asked";
    *first = std::move(second);
    EXPECT_EQ(first->fd(), fd);
    EXPECT_EQ(second.fd(), -1);
  }
  PerfEventArray& same = *first;
  *first = std::move(same);
  EXPECT_EQ(first->fd(), fd) << "assigned to itself it is as it was";
  EXPECT_TRUE(FakeKernel::is_open(fd));
  EXPECT_TRUE(first->open(0).has_value());
}

// A BPF program of type 4 answers like a map of type 4, except for the sizes.
TEST_F(PerfEventArrayTest, RefusesMapsOfOtherElementSizes) {
  for (const auto& [key, value] : {std::pair{4U, 8U}, {8U, 4U}, {0U, 4U}, {4U, 0U}}) {
    kernel_.map_info.key_size = key;
    kernel_.map_info.value_size = value;
    const auto array = PerfEventArray::from_fd(map_fd_);
    ASSERT_FALSE(array.has_value()) << key << ", " << value;
    const auto* error = std::get_if<SyscallError>(&array.error().cause);
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->io_error, std::errc::invalid_argument);
  }
}

TEST_F(PerfEventArrayTest, OpenPutsTheEventIntoTheEntryOfItsCpu) {
  auto array = PerfEventArray::from_fd(map_fd_);
  ASSERT_TRUE(array.has_value());
  for (const unsigned index : {0U, 1U, 7U, 4095U}) {
    const auto buffer = array->open(index);
    ASSERT_TRUE(buffer.has_value());
    EXPECT_EQ(kernel_.cpu, static_cast<int>(index));
    EXPECT_EQ(kernel_.updated, (std::pair{index, static_cast<unsigned>(buffer->fd())}));
    EXPECT_EQ(static_cast<int>(kernel_.bpf.map_fd), array->fd());
    EXPECT_EQ(kernel_.bpf.flags, 0U) << "BPF_ANY";
    expect_zeroes_after(offsetof(bpf_attr, flags) + 8);
    EXPECT_EQ(kernel_.calls.back(), "update") << "of an event that is enabled and mapped";
  }
}

TEST_F(PerfEventArrayTest, OpenForwardsItsArguments) {
  auto array = PerfEventArray::from_fd(map_fd_);
  ASSERT_TRUE(array.has_value());
  const std::size_t page = testing::page_size();
  const auto error_of = [](const auto& buffer) {
    return std::get<PerfBufferError>(buffer.error().cause);
  };
  auto buffer = array->open(1, 3);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(error_of(buffer).kind, PerfBufferError::Kind::InvalidPageCount);
  EXPECT_EQ(error_of(buffer).page_count, 3U);
  ASSERT_TRUE(array->open(1, {.page_count = 1, .wakeup_watermark = 100}).has_value());
  EXPECT_EQ(kernel_.event.wakeup_watermark, 100U);
  for (const auto& [pages, watermark] : {std::pair{8U, 0U}, {1U, 7U}}) {
    ASSERT_TRUE(array->open(1, {pages, watermark}).has_value());
    EXPECT_EQ(FakeKernel::mappings(), 0);
    EXPECT_EQ(kernel_.event.wakeup_watermark, watermark == 0 ? 1 : watermark);
  }
  EXPECT_EQ(FakeKernel::mapped_size(array->open(1, {64})->fd()), 65 * page);
  EXPECT_EQ(FakeKernel::mapped_size(array->open(1, {})->fd()), 3 * page);
  EXPECT_EQ(FakeKernel::mapped_size(array->open(1, 4)->fd()), 5 * page);
  buffer = array->open(1, -4);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(error_of(buffer).kind, PerfBufferError::Kind::InvalidPageCount);
  kernel_.open_errno = EMFILE;
  buffer = array->open(1);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(error_of(buffer).page_count, 2U) << "the default";
}

TEST_F(PerfEventArrayTest, FailedMapUpdateUndoesOpen) {
  auto array = PerfEventArray::from_fd(map_fd_);
  ASSERT_TRUE(array.has_value());
  kernel_.update_errno = E2BIG;
  const auto buffer = array->open(9, 4);
  ASSERT_FALSE(buffer.has_value());
  const auto error = std::get<PerfBufferError>(buffer.error().cause);
  EXPECT_EQ(error.kind, PerfBufferError::Kind::IOError);
  EXPECT_EQ(error.io_error, std::error_code(E2BIG, std::generic_category()));
  EXPECT_EQ(error.cpu, 9U);
  EXPECT_EQ(error.page_count, 4U);
  EXPECT_EQ(FakeKernel::mappings(), 0);
}

TEST_F(PerfEventArrayTest, ABufferKeepsTheMapOpen) {
  auto array = std::optional{*PerfEventArray::from_fd(map_fd_)};
  const int fd = array->fd();
  {
    const auto buffer = array->open(0);
    ASSERT_TRUE(buffer.has_value());
    array.reset();
    EXPECT_TRUE(FakeKernel::is_open(fd));
  }
  EXPECT_FALSE(FakeKernel::is_open(fd));
}

// A PerfBuffer moved out of it would leave the map behind, and the entry goes with the map's file.
static_assert(!std::is_constructible_v<PerfBuffer, PerfEventArrayBuffer>);
static_assert(!std::is_assignable_v<PerfBuffer&, PerfEventArrayBuffer>);
static_assert(!std::is_convertible_v<PerfEventArrayBuffer&, PerfBuffer&>);
static_assert(!std::is_convertible_v<PerfEventArrayBuffer*, PerfBuffer*>);
static_assert(!std::is_copy_constructible_v<PerfEventArrayBuffer>);
static_assert(std::is_nothrow_move_constructible_v<PerfEventArrayBuffer>);
static_assert(std::is_nothrow_move_assignable_v<PerfEventArrayBuffer>);

TEST_F(PerfEventArrayTest, ABufferDrainsAsAPerfBufferDoes) {
  auto buffer = PerfEventArray::from_fd(map_fd_).value().open(0);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(buffer->fd(), static_cast<int>(kernel_.updated.second));
  const auto emit = [&](std::uint64_t position) {
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, 16};
    const std::uint64_t page = testing::page_size();
    const std::uint64_t length = 4;
    const std::uint64_t next = position + 16;
    ASSERT_EQ(::pwrite(buffer->fd(), &header, 8, static_cast<off_t>(page + position)), 8);
    ASSERT_EQ(::pwrite(buffer->fd(), &length, 8, static_cast<off_t>(page + position + 8)), 8);
    ASSERT_EQ(::pwrite(buffer->fd(), &next, 8, offsetof(perf_event_mmap_page, data_head)), 8);
  };
  EXPECT_FALSE(std::as_const(*buffer).readable());
  for (std::uint64_t i = 0; i < 4; ++i) emit(16 * i);
  EXPECT_TRUE(std::as_const(*buffer).readable());
  const auto broken = buffer->try_fold(7, [](int n, const PerfEvent&) -> ControlFlow<int, int> {
    if (n == 8) return Break{n};
    return Continue{n + 1};
  });
  EXPECT_EQ(broken.break_value(), 8);
  int events = 0;
  EXPECT_FALSE(buffer->for_each_while([&](const PerfEvent&) { return ++events != 1; }));
  buffer->for_each([&](const PerfEvent&) { ++events; });
  EXPECT_EQ(events, 2);
  emit(64);
  EXPECT_EQ(buffer->fold(5, [](int n, const PerfEvent&) { return n + 1; }), 6);
  EXPECT_FALSE(buffer->readable());
}

TEST_F(PerfEventArrayTest, PinningForwardsPath) {
  const auto array = PerfEventArray::from_fd(map_fd_);
  ASSERT_TRUE(array.has_value());
  ASSERT_TRUE(array->pin("/sys/fs/bpf/one").has_value());
  EXPECT_EQ(kernel_.calls.back(), "pin");
  EXPECT_EQ(kernel_.path, "/sys/fs/bpf/one");
  EXPECT_EQ(static_cast<int>(kernel_.bpf.bpf_fd), array->fd());
  expect_zeroes_after(offsetof(bpf_attr, bpf_fd) + 4);
  kernel_.calls.clear();
  const auto pinned = PerfEventArray::from_pin("/sys/fs/bpf/two");
  ASSERT_TRUE(pinned.has_value());
  EXPECT_THAT(kernel_.calls, ElementsAre("get", "info"));
  EXPECT_EQ(kernel_.path, "/sys/fs/bpf/two");
}

// Checks that the error names the failed call, its object and the system's error.
template <class T>
void expect_failed(const std::expected<T, PerfEventArrayError>& result, const std::string& call,
                   const std::string& object, int error) {
  ASSERT_FALSE(result.has_value());
  const auto* failed = std::get_if<SyscallError>(&result.error().cause);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->call, call);
  EXPECT_EQ(failed->object, object);
  EXPECT_EQ(failed->io_error, std::error_code(error, std::generic_category()));
}

TEST_F(PerfEventArrayTest, ErrorsNameFailedCallWithItsObject) {
  expect_failed(PerfEventArray::from_fd(-1), "fcntl(F_DUPFD_CLOEXEC)", "map fd -1", EBADF);
  const auto array = PerfEventArray::from_fd(map_fd_);
  ASSERT_TRUE(array.has_value());
  kernel_.pin_errno = EEXIST;
  expect_failed(array->pin("/sys/fs/bpf/one"), "bpf_obj_pin", "/sys/fs/bpf/one", EEXIST);
  kernel_.get_errno = ENOENT;
  expect_failed(PerfEventArray::from_pin("/two"), "bpf_obj_get", "/two", ENOENT);
  // A null pointer gets the kernel's error without a system call.
  kernel_.calls.clear();
  expect_failed(array->pin(nullptr), "bpf_obj_pin", "a null pointer", EFAULT);
  expect_failed(PerfEventArray::from_pin(nullptr), "bpf_obj_get", "a null pointer", EFAULT);
  EXPECT_THAT(kernel_.calls, ElementsAre());
  // The number that the second descriptor will get: the lowest free one.
  const int next = ::dup(map_fd_);
  ::close(next);
  // The error names the caller's descriptor.
  const std::string object = "map fd " + std::to_string(map_fd_);
  kernel_.map_info.key_size = 8;
  expect_failed(PerfEventArray::from_fd(map_fd_), "bpf_obj_get_info_by_fd", object, EINVAL);
  kernel_.info_errno = EPERM;
  expect_failed(PerfEventArray::from_fd(map_fd_), "bpf_obj_get_info_by_fd", object, EPERM);
  kernel_.get_errno = 0;
  expect_failed(PerfEventArray::from_pin("/two"), "bpf_obj_get_info_by_fd", "/two", EPERM);
  EXPECT_FALSE(FakeKernel::is_open(next)) << "the array closes the ring again";
}

}  // namespace
}  // namespace perfring
