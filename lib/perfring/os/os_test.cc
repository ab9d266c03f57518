#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"

namespace perfring::os {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

TEST(FdTest, ClosesOwnedDescriptorExactlyOnce) {
  const int first = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int second = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(Fd{}.get(), -1);
  {
    Fd a{first};
    Fd b{std::move(a)};
    EXPECT_EQ(a.get(), -1);  // NOLINT: moved from, on purpose
    EXPECT_EQ(b.get(), first);
    EXPECT_TRUE(is_open(first));
    Fd c{second};
    c = std::move(b);
    EXPECT_FALSE(is_open(second)) << "what it held before";
    EXPECT_EQ(b.get(), -1);  // NOLINT
    Fd& same = c;
    c = std::move(same);
    EXPECT_TRUE(is_open(first));
    errno = 0;
  }
  EXPECT_EQ(errno, 0) << "no descriptor is closed twice, and -1 never";
  EXPECT_FALSE(is_open(first));
}

TEST(SharedFdTest, ClosesWhatSeveralOwnWithTheLast) {
  EXPECT_EQ(SharedFd{}.get(), -1);
  const int first = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int second = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  SharedFd a{Fd{first}};
  EXPECT_EQ(a.get(), first);
  {
    const SharedFd b = a;
    SharedFd c = a;
    a = SharedFd{Fd{second}};
    EXPECT_TRUE(is_open(first)) << "b and c own it";
    c = std::move(a);
    EXPECT_EQ(a.get(), -1);  // NOLINT: moved from, on purpose
    EXPECT_EQ(c.get(), second);
    EXPECT_TRUE(is_open(first));
    EXPECT_EQ(b.get(), first);
    const SharedFd none = a;
    EXPECT_EQ(none.get(), -1);
    SharedFd& same = c;
    c = same;
    c = std::move(same);
    EXPECT_EQ(c.get(), second);
    EXPECT_TRUE(is_open(second));
    a = c;
  }
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(second)) << "a owns it";
  a = SharedFd{};
  EXPECT_FALSE(is_open(second));
}

// Each thread has its own SharedFd; all share the count.
TEST(SharedFdTest, ManyThreadsMayShareDescriptor) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    const SharedFd shared{Fd{fd}};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([own = shared] {
        for (int n = 0; n < 10'000; ++n) static_cast<void>(SharedFd{own}.get());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(is_open(fd));
  }
  EXPECT_FALSE(is_open(fd));
}

// Frees the number of a standard descriptor during its lifetime.
class Freed {
 public:
  explicit Freed(int number) : number_{number}, saved_{::fcntl(number, F_DUPFD_CLOEXEC, 3)} {
    ::close(number_);
  }
  ~Freed() {
    ::dup2(saved_, number_);
    ::close(saved_);
  }
  Freed(const Freed&) = delete;
  Freed& operator=(const Freed&) = delete;

 private:
  int number_;
  int saved_;
};

TEST(FdTest, StandardDescriptorNumbersAreOwned) {
  const Fd file{::open("/dev/zero", O_RDONLY | O_CLOEXEC)};
  ASSERT_GT(file.get(), 2);
  for (const int number : {0, 1, 2}) {
    const Freed freed{number};
    {
      auto copy = duplicate(file.get());
      ASSERT_TRUE(copy.has_value());
      EXPECT_EQ(copy->get(), number) << "the lowest that is free";
      const Fd moved{*std::move(copy)};
      EXPECT_TRUE(is_open(number));
    }
    EXPECT_FALSE(is_open(number));
  }
}

TEST(DuplicateTest, DuplicateIsClosedOnExec) {
  const Fd file{::open("/dev/zero", O_RDONLY)};
  const auto copy = duplicate(file.get());
  ASSERT_TRUE(copy.has_value());
  EXPECT_NE(copy->get(), file.get());
  EXPECT_EQ(::fcntl(copy->get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(duplicate(-1).error(), std::errc::bad_file_descriptor);
}

bool is_mapped(const std::byte* at) {
  unsigned char resident = 0;
  return ::mincore(const_cast<std::byte*>(at), 1, &resident) == 0;
}

TEST(MappingTest, SharedMappingIsUnmappedOnce) {
  const Fd file{::memfd_create("mapping", MFD_CLOEXEC)};
  const std::size_t size = 2 * page_size();
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
  std::byte* at = nullptr;
  {
    auto mapping = *Mapping::map(file.get(), size);
    at = mapping.bytes().data();
    ASSERT_EQ(mapping.bytes().size(), size);
    mapping.bytes()[size - 1] = std::byte{7};
    char last = 0;
    EXPECT_EQ(::pread(file.get(), &last, 1, static_cast<off_t>(size - 1)), 1);
    EXPECT_EQ(last, 7);
    Mapping moved{std::move(mapping)};
    EXPECT_TRUE(mapping.bytes().empty());  // NOLINT: moved from, on purpose
    auto other = *Mapping::map(file.get(), size);
    const std::byte* replaced = other.bytes().data();
    other = std::move(moved);
    EXPECT_FALSE(is_mapped(replaced));
    EXPECT_TRUE(moved.bytes().empty());  // NOLINT
    Mapping& same = other;
    other = std::move(same);
    EXPECT_TRUE(is_mapped(at));
  }
  EXPECT_FALSE(is_mapped(at));
}

TEST(MappingTest, AForgottenMappingStaysMapped) {
  const Fd file{::memfd_create("mapping", MFD_CLOEXEC)};
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(page_size())), 0);
  std::byte* at = nullptr;
  {
    auto mapping = *Mapping::map(file.get(), page_size());
    at = mapping.bytes().data();
    mapping.forget();
    EXPECT_TRUE(mapping.bytes().empty());
  }
  EXPECT_TRUE(is_mapped(at));
  EXPECT_EQ(::munmap(at, page_size()), 0);
}

TEST(MappingTest, ReadOnlyMappingCannotBeWritten) {
  const Fd file{::memfd_create("mapping", MFD_CLOEXEC)};
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(page_size())), 0);
  const auto mapping = *Mapping::map_read_only(file.get(), page_size());
  ASSERT_EQ(::pwrite(file.get(), "x", 1, 0), 1);
  EXPECT_EQ(mapping.bytes()[0], std::byte{'x'});
  // Without a signal: read(2) into the mapping fails.
  const Fd zero{::open("/dev/zero", O_RDONLY | O_CLOEXEC)};
  EXPECT_EQ(::read(zero.get(), mapping.bytes().data(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(Mapping::map_read_only(-1, page_size()).error(), std::errc::bad_file_descriptor);
}

TEST(MappingTest, ReturnsTheSystemsError) {
  EXPECT_EQ(Mapping::map(-1, page_size()).error(), std::errc::bad_file_descriptor);
}

TEST(SyscallsTest, ReturnTheSystemsError) {
  // qemu-user supports no ioctl of a perf event.
  const bool is_native = std::getenv("PERFRING_RUN_UNDER") == nullptr;
  const std::errc refusal =
      is_native ? std::errc::bad_file_descriptor : std::errc::function_not_supported;
  EXPECT_EQ(perf_event_enable(-1).error(), refusal);
  EXPECT_EQ(perf_event_disable(-1).error(), refusal);
  EXPECT_FALSE(bpf_map_update(-1, 0, 0).has_value());
  EXPECT_FALSE(bpf_map_info_of(-1).has_value());
  EXPECT_FALSE(bpf_pin(-1, "/nonexistent/pin").has_value());
  EXPECT_FALSE(bpf_get_pinned("/nonexistent/pin").has_value());
}

TEST(MonotonicTest, IsTheClockOfSteadyClock) {
  const auto now = [] {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}.count());
  };
  const std::uint64_t before = now();
  const std::uint64_t time = monotonic_ns();
  EXPECT_LE(before, time);
  EXPECT_LE(time, now());
}

}  // namespace
}  // namespace perfring::os
