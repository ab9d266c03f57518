// Provokes every way in which the system refuses a buffer. Checks the report, and that the advice
// is true (S7).

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "harness/live/live_testing.h"
#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer.h"
#include "perfring/perf_buffer_error.h"

namespace perfring::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Kind = PerfBufferError::Kind;

// The machine decides whether CPU-wide events and large rings need privileges.
int paranoid() {
  const std::string text = os::read_line("/proc/sys/kernel/perf_event_paranoid").value_or("");
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::size_t mlock_kib() {
  const std::string text = os::read_line("/proc/sys/kernel/perf_event_mlock_kb").value_or("");
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::InvalidPageCount:
      return "InvalidPageCount";
    case Kind::OpenError:
      return "OpenError";
    case Kind::MMapError:
      return "MMapError";
    case Kind::PerfEventEnableError:
      return "PerfEventEnableError";
    case Kind::IOError:
      return "IOError";
  }
  return "?";
}

// Returns "KIND ERRNO | message | explanation", or "open".
std::string report(const std::expected<PerfBuffer, PerfBufferError>& buffer) {
  if (buffer) return "open";
  const PerfBufferError& error = buffer.error();
  return std::string{name_of(error.kind)} + " " + std::to_string(error.io_error.value()) + " | " +
         error.message() + " | " + error.explain();
}

std::string beginning(const char* kind, int error_number, const std::string& message) {
  return std::string{kind} + " " + std::to_string(error_number) + " | " + message + " | ";
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &both) != 0) {
    throw std::system_error(errno, std::generic_category(), "setrlimit");
  }
}

class PerfBufferErrorsTest : public LiveTest {
 protected:
  // Returns a user that nobody else is, so that nobody else's rings count toward its limit.
  static uid_t stranger() { return 1000000 + static_cast<uid_t>(::getpid()); }
};

// K38
TEST_F(PerfBufferErrorsTest, WithoutPrivilegeOpenIsRefused) {
  if (paranoid() < 1) GTEST_SKIP() << "kernel.perf_event_paranoid allows CPU-wide events to all";
  const std::string output = in_child([&] {
    become(kNobody);
    return report(PerfBuffer::open(cpu()));
  });
  EXPECT_THAT(output, StartsWith(beginning("OpenError", EACCES,
                                           "perf_event_open failed: Permission denied")));
  EXPECT_THAT(output, HasSubstr("kernel.perf_event_paranoid is " + std::to_string(paranoid())));
  EXPECT_THAT(output, HasSubstr("CAP_PERFMON"));
}

// The capability that the advice names suffices.
TEST_F(PerfBufferErrorsTest, WithCapPerfmonOpenSucceeds) {
  constexpr std::array kPerfmon{CAP_PERFMON};
  EXPECT_EQ(in_child([&] {
              become(stranger(), kPerfmon);
              return report(PerfBuffer::open(cpu()));
            }),
            "open");
}

TEST_F(PerfBufferErrorsTest, ACpuThatDoesNotExistIsNamed) {
  for (const std::uint32_t cpu : {1u << 20, 0x7fffffffu, 0xffffffffu}) {
    const std::string output = report(PerfBuffer::open(cpu));
    EXPECT_THAT(output, StartsWith(beginning("OpenError", EINVAL,
                                             "perf_event_open failed: Invalid argument")));
    EXPECT_THAT(output,
                AllOf(HasSubstr("on CPU " + std::to_string(cpu)),
                      HasSubstr("online CPUs: " + os::to_cpu_list(os::online_cpus().value()))));
  }
}

TEST_F(PerfBufferErrorsTest, WithoutDescriptorsOpenIsRefused) {
  const std::string output = in_child([&] {
    limit(RLIMIT_NOFILE, 0);
    return report(PerfBuffer::open(cpu()));
  });
  EXPECT_THAT(output, StartsWith(beginning("OpenError", EMFILE,
                                           "perf_event_open failed: Too many open files")));
  EXPECT_THAT(output, HasSubstr("ulimit -n"));
}

// A container's seccomp profile refuses like this, or a kernel without perf events.
TEST_F(PerfBufferErrorsTest, APolicyAgainstPerfEventOpenIsToldApart) {
  const std::string output = in_child([&] {
    refuse(SYS_perf_event_open, EPERM);
    return report(PerfBuffer::open(cpu()));
  });
  EXPECT_THAT(output, StartsWith(beginning("OpenError", EPERM,
                                           "perf_event_open failed: Operation not permitted")));
  EXPECT_THAT(output, HasSubstr("a seccomp profile"));

  for (const int error_number : {ENOSYS, ENOENT}) {
    EXPECT_THAT(in_child([&] {
                  refuse(SYS_perf_event_open, error_number);
                  return report(PerfBuffer::open(cpu()));
                }),
                HasSubstr("CONFIG_PERF_EVENTS"));
  }
  EXPECT_THAT(in_child([&] {
                refuse(SYS_perf_event_open, ENODEV);  // an offline CPU (K34)
                return report(PerfBuffer::open(cpu()));
              }),
              HasSubstr("CPU " + std::to_string(cpu()) + " is online"));
  EXPECT_THAT(in_child([&] {
                refuse(SYS_perf_event_open, EIO);
                return report(PerfBuffer::open(cpu()));
              }),
              HasSubstr("see perf_event_open(2)"));
}

// K38. The sysctl's figure is per CPU: the advised count fits on all CPUs at once, and twice as
// much does not.
TEST_F(PerfBufferErrorsTest, RingAboveLockedMemoryNamesCountThatFits) {
  if (paranoid() < 0) GTEST_SKIP() << "kernel.perf_event_paranoid lifts the limit";
  constexpr std::array kPerfmon{CAP_PERFMON};
  const auto cpus = os::online_cpus().value();
  const auto on_all_cpus = [&](std::size_t page_count) {
    return in_child([&]() -> std::string {
      become(stranger(), kPerfmon);
      limit(RLIMIT_MEMLOCK, 0);
      std::vector<PerfBuffer> buffers;
      for (const std::uint32_t cpu : cpus) {
        auto buffer = PerfBuffer::open(cpu, page_count);
        if (!buffer) return report(buffer);
        buffers.push_back(*std::move(buffer));
      }
      return "open";
    });
  };
  const std::size_t allowed = mlock_kib() * 1024 / os::page_size();
  ASSERT_GE(allowed, 2u);
  const std::size_t fits = std::bit_floor(allowed - 1);

  EXPECT_EQ(on_all_cpus(fits), "open");
  const std::string output = on_all_cpus(fits * 2);
  EXPECT_THAT(output,
              StartsWith(beginning("MMapError", EPERM, "mmap failed: Operation not permitted")));
  EXPECT_THAT(output,
              AllOf(HasSubstr("1 + " + std::to_string(fits * 2) + " pages"),
                    HasSubstr("kernel.perf_event_mlock_kb is " + std::to_string(mlock_kib())),
                    HasSubstr("at most " + std::to_string(fits) + " data pages fit"),
                    HasSubstr("RLIMIT_MEMLOCK"), HasSubstr("CAP_IPC_LOCK")));
}

// Tries the remedies that the advice names.
TEST_F(PerfBufferErrorsTest, RaisingRlimitMemlockOrCapIpcLockLiftsTheLimit) {
  constexpr std::array kPerfmon{CAP_PERFMON};
  constexpr std::array kBoth{CAP_PERFMON, CAP_IPC_LOCK};
  const std::size_t cpus = os::online_cpus().value().size();
  const std::size_t above = std::bit_ceil(cpus * mlock_kib() * 1024 / os::page_size());
  const auto open_as = [&](std::span<const int> capabilities, rlim_t memlock) {
    return in_child([&] {
      limit(RLIMIT_MEMLOCK, memlock);
      become(stranger(), capabilities);
      return report(PerfBuffer::open(cpu(), above));
    });
  };
  if (paranoid() >= 0) {
    EXPECT_THAT(open_as(kPerfmon, 0), StartsWith("MMapError"));
  }
  EXPECT_EQ(open_as(kBoth, 0), "open");
  rlimit memlock{};
  ::getrlimit(RLIMIT_MEMLOCK, &memlock);
  if (memlock.rlim_max >= (above + 1) * os::page_size()) {
    EXPECT_EQ(open_as(kPerfmon, memlock.rlim_max), "open");
  }
}

// K35: the ring's table of pages is larger than the kernel allocates in one piece.
TEST_F(PerfBufferErrorsTest, ARingTheKernelCannotAllocateIsRefused) {
  if (sizeof(void*) != 8 || os::page_size() != 4096) {
    GTEST_SKIP() << "2^19 pages are refused on 64-bit machines with pages of 4 KiB";
  }
  const std::string output = report(PerfBuffer::open(cpu(), std::size_t{1} << 19));
  EXPECT_THAT(output,
              StartsWith(beginning("MMapError", ENOMEM, "mmap failed: Cannot allocate memory")));
  EXPECT_THAT(output, AllOf(HasSubstr("ask for fewer pages"), HasSubstr("524288 pages")));
}

TEST_F(PerfBufferErrorsTest, APolicyAgainstEnableIsToldApart) {
  const std::string output = in_child([&] {
    refuse(SYS_ioctl, PERF_EVENT_IOC_ENABLE, EPERM);
    return report(PerfBuffer::open(cpu()));
  });
  EXPECT_THAT(output,
              StartsWith(beginning("PerfEventEnableError", EPERM,
                                   "PERF_EVENT_IOC_ENABLE failed: Operation not permitted")));
  EXPECT_THAT(output, HasSubstr("seccomp"));
}

// At each error open() already holds some of its resources.
TEST_F(PerfBufferErrorsTest, AFailureHoldsNothing) {
  EXPECT_EQ(in_child([&]() -> std::string {
              refuse(SYS_ioctl, PERF_EVENT_IOC_ENABLE, EPERM);
              if (PerfBuffer::open(cpu())) return "open";
              if (PerfBuffer::open(1u << 20)) return "open";
              return std::to_string(perf_event_files()) + " files, " +
                     std::to_string(perf_event_mappings().size()) + " mappings";
            }),
            "0 files, 0 mappings");
}

}  // namespace
}  // namespace perfring::live
