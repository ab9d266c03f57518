// The texts of a PerfBuffer's errors. The tests build each error by hand; harness/live provokes
// them on a kernel.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "perfring/os/cpus.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event_array_error.h"
#include "perfring/perfring.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = PerfBufferError::Kind;

std::error_code code(int error) {
  return {error, std::generic_category()};
}

TEST(AyaPerfBufferTest, InvalidPageCount) {
  for (const std::size_t count : {0U, 3U, 5U}) {
    const auto buffer = PerfBuffer::open(0, count);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().kind, Kind::InvalidPageCount);
    EXPECT_EQ(buffer.error().message(),
              "invalid page count " + std::to_string(count) + ", the value must be a power of two");
  }
}

TEST(PerfBufferErrorTest, RingAbove2GiBErrorNamesLimit) {
  const std::size_t most = (std::size_t{1} << 31) / testing::page_size();
  for (const std::size_t count :
       {2 * most, std::size_t{1} << (std::numeric_limits<std::size_t>::digits - 1)}) {
    const auto buffer = PerfBuffer::open(0, count);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().kind, Kind::InvalidPageCount);
    EXPECT_THAT(buffer.error().message(),
                HasSubstr("of at most " + std::to_string(most) + " (a ring of 2 GiB)"));
    EXPECT_THAT(buffer.error().explain(), HasSubstr("from 1 to " + std::to_string(most)));
  }
}

TEST(PerfBufferErrorTest, TheLimitIsNamedAboveItOnly) {
  const std::size_t most = (std::size_t{1} << 31) / testing::page_size();
  const auto named = HasSubstr("of at most");
  EXPECT_THAT((PerfBufferError{Kind::InvalidPageCount, {}, 0, most}.message()), Not(named));
  EXPECT_THAT((PerfBufferError{Kind::InvalidPageCount, {}, 0, most + 1}.message()), named);
}

TEST(PerfBufferErrorTest, MessagesEqualAyas) {
  const std::error_code denied = code(EACCES);
  EXPECT_EQ((PerfBufferError{Kind::OpenError, denied, 1, 2}.message()),
            "perf_event_open failed: " + denied.message());
  EXPECT_EQ((PerfBufferError{Kind::MMapError, denied, 1, 2}.message()),
            "mmap failed: " + denied.message());
  EXPECT_EQ((PerfBufferError{Kind::PerfEventEnableError, denied, 1, 2}.message()),
            "PERF_EVENT_IOC_ENABLE failed: " + denied.message());
  EXPECT_EQ((PerfBufferError{Kind::IOError, denied, 1, 2}.message()), denied.message());
}

struct Advice {
  Kind kind;
  int error;
  std::string request;
  std::string change;
};

class ExplainTest : public ::testing::TestWithParam<Advice> {};

TEST_P(ExplainTest, ExplanationHasAllThreeParts) {
  const auto& [kind, error, request, change] = GetParam();
  const std::string text = PerfBufferError::at_failure(kind, code(error), 7, 64).explain();
  EXPECT_THAT(text, AllOf(HasSubstr("asked for: " + request),
                          HasSubstr("\nthe system said: " + code(error).message() + "\n"),
                          HasSubstr("\nto change: "), HasSubstr(change)));
}

const std::string kOpen = "perf_event_open of a software BPF_OUTPUT event on CPU 7";
const std::string kMap = "mmap of a ring of 1 + 64 pages on CPU 7";
const std::string kUpdate = "bpf BPF_MAP_UPDATE_ELEM of index 7";

INSTANTIATE_TEST_SUITE_P(
    Errors, ExplainTest,
    ::testing::Values(Advice{Kind::OpenError, EACCES, kOpen, "kernel.perf_event_paranoid is "},
                      Advice{Kind::OpenError, EPERM, kOpen, "CAP_PERFMON"},
                      Advice{Kind::OpenError, EMFILE, kOpen, "ulimit -n"},
                      Advice{Kind::OpenError, ENOENT, kOpen, "4.4 or later"},
                      Advice{Kind::OpenError, ENOSYS, kOpen, "CONFIG_PERF_EVENTS"},
                      Advice{Kind::OpenError, EIO, kOpen, "perf_event_open(2)"},
                      Advice{Kind::MMapError, EPERM, kMap, "kernel.perf_event_mlock_kb is "},
                      Advice{Kind::MMapError, ENOMEM, kMap, "fewer pages"},
                      Advice{Kind::MMapError, EIO, kMap, "mmap(2)"},
                      Advice{Kind::PerfEventEnableError, EPERM,
                             "ioctl PERF_EVENT_IOC_ENABLE of the event on CPU 7", "seccomp"},
                      Advice{Kind::IOError, E2BIG, kUpdate, "max_entries"},
                      Advice{Kind::IOError, EPERM, kUpdate, "CAP_BPF"},
                      Advice{Kind::IOError, EACCES, kUpdate, "CAP_BPF"},
                      Advice{Kind::IOError, EBADF, kUpdate, "not been moved from"},
                      Advice{Kind::IOError, EIO, kUpdate, "bpf(2)"}));

// One error of each kind, word for word.
TEST(PerfBufferErrorTest, ExplainsInThreeLines) {
  const auto explained = [](Kind kind, int error) {
    return PerfBufferError::at_failure(kind, code(error), 7, 64).explain();
  };
  const auto error_line = [](int error) {
    return "\nthe system said: " + code(error).message() + "\nto change: ";
  };
  EXPECT_EQ(PerfBufferError::at_failure(Kind::InvalidPageCount, {}, 7, 3).explain(),
            "asked for: a ring of 3 data pages on CPU 7\n"
            "the system said: nothing: perfring checks this before any system call\n"
            "to change: give a power of two from 1 to " +
                std::to_string((std::size_t{1} << 31) / testing::page_size()) + " (a page is " +
                std::to_string(testing::page_size()) + " bytes, a ring at most 2 GiB)");
  EXPECT_EQ(explained(Kind::OpenError, EIO), "asked for: " + kOpen + ", for all processes" +
                                                 error_line(EIO) +
                                                 "see perf_event_open(2) for this error");
  EXPECT_EQ(explained(Kind::MMapError, ENOMEM),
            "asked for: " + kMap + error_line(ENOMEM) +
                "ask for fewer pages: the kernel could not allocate a ring of 64 pages");
  EXPECT_EQ(explained(Kind::PerfEventEnableError, EPERM),
            "asked for: ioctl PERF_EVENT_IOC_ENABLE of the event on CPU 7" + error_line(EPERM) +
                "change the seccomp or LSM policy that forbids it: the kernel itself does not");
  EXPECT_EQ(explained(Kind::IOError, EIO), "asked for: " + kUpdate + " with the event on CPU 7" +
                                               error_line(EIO) +
                                               "see bpf(2), BPF_MAP_UPDATE_ELEM, for this error");
}

TEST(PerfBufferErrorTest, AnErrorOfNoKindIsUnknown) {
  for (const PerfBufferError& error :
       {PerfBufferError{Kind{99}, {}, 0, 0}, PerfBufferError::at_failure(Kind{99}, {}, 0, 0)}) {
    EXPECT_EQ(error.message(), "unknown error");
    EXPECT_EQ(error.explain(), "unknown error");
  }
}

TEST(PerfBufferErrorTest, AHandMadeErrorHasNoAdvice) {
  EXPECT_EQ((PerfBufferError{Kind::MMapError, code(EPERM), 7, 64}.explain()),
            "asked for: mmap of a ring of 1 + 64 pages on CPU 7\nthe system said: " +
                code(EPERM).message());
}

class PerfBufferErrorAdviceTest : public ::testing::Test {
 protected:
  static std::string explained(Kind kind, int error) {
    return PerfBufferError::at_failure(kind, code(error), 0, 4096).explain();
  }
  testing::FakeKernel kernel_;
};

// The ring that fits must stay within the sysctl together with its control page: 516 KiB are 129
// pages of 4 KiB, so 128 data pages fit.
TEST_F(PerfBufferErrorAdviceTest, TheAdvisedPageCountFitsTheLimit) {
  std::string& limit = kernel_.files["/proc/sys/kernel/perf_event_mlock_kb"].emplace();
  const std::size_t kib_of_a_page = testing::page_size() / 1024;
  for (const auto& [pages, fits] : {std::pair{0U, 0U},
                                    {1U, 0U},
                                    {2U, 1U},
                                    {3U, 2U},
                                    {4U, 2U},
                                    {5U, 4U},
                                    {128U, 64U},
                                    {129U, 128U},
                                    {130U, 128U},
                                    {257U, 256U}}) {
    for (const std::size_t more : {std::size_t{0}, kib_of_a_page - 1}) {
      limit = std::to_string(pages * kib_of_a_page + more);
      const std::string expected =
          "kernel.perf_event_mlock_kb is " + limit + " (KiB of ring for each user on each CPU): " +
          (fits == 0 ? "no ring fits; raise that limit"
                     : "at most " + std::to_string(fits) +
                           (fits == 1 ? " data page fits" : " data pages fit") +
                           "; ask for fewer pages, raise that limit");
      limit += '\n';
      EXPECT_THAT(explained(Kind::MMapError, EPERM), HasSubstr(expected));
    }
  }
}

TEST_F(PerfBufferErrorAdviceTest, NoPageCountFitsALimitThatCannotBeRead) {
  std::optional<std::string>& limit = kernel_.files["/proc/sys/kernel/perf_event_mlock_kb"];
  EXPECT_THAT(explained(Kind::MMapError, EPERM),
              HasSubstr("kernel.perf_event_mlock_kb is not readable (KiB of ring for each user "
                        "on each CPU); ask"));
  limit = "all\n";
  EXPECT_THAT(explained(Kind::MMapError, EPERM),
              HasSubstr("kernel.perf_event_mlock_kb is all (KiB of ring for each user on each "
                        "CPU); ask"));
}

TEST_F(PerfBufferErrorAdviceTest, NamesTheLimitsThatTheKernelsFilesState) {
  kernel_.files["/proc/sys/kernel/perf_event_paranoid"] = "7\n";
  EXPECT_THAT(explained(Kind::OpenError, EACCES), HasSubstr("kernel.perf_event_paranoid is 7: "));
  EXPECT_THAT(explained(Kind::OpenError, EACCES),
              EndsWith("to change: kernel.perf_event_paranoid is 7: run with CAP_PERFMON (before "
                       "Linux 5.8: CAP_SYS_ADMIN), or set that to 0 or below; in a container, use "
                       "a seccomp profile that allows perf_event_open as well"));
  kernel_.files["/sys/devices/system/cpu/online"] = "1-2,9\n";
  EXPECT_THAT(explained(Kind::OpenError, ENODEV),
              EndsWith("to change: choose an online CPU (online CPUs: 1-2,9)"));
  EXPECT_THAT(*os::online_cpus(), ElementsAre(1, 2, 9));
  EXPECT_EQ(kernel_.file_flags, O_RDONLY | O_CLOEXEC);
  kernel_.files["/sys/devices/system/cpu/online"] = "0\n";
  EXPECT_THAT(explained(Kind::OpenError, EINVAL),
              EndsWith("to change: see perf_event_open(2) for this error: CPU 0 is online"));
  kernel_.files["/sys/devices/system/cpu/online"] = "1\n";
  EXPECT_THAT(explained(Kind::OpenError, EINVAL),
              EndsWith("to change: choose an online CPU (online CPUs: 1)"));
}

TEST_F(PerfBufferErrorAdviceTest, AdviceSaysIfTheOnlineCpusCannotBeRead) {
  const std::string path = "/sys/devices/system/cpu/online";
  kernel_.files[path] = std::nullopt;
  EXPECT_EQ(os::online_cpus().error().path, path);
  EXPECT_THAT(explained(Kind::OpenError, ENODEV),
              EndsWith("to change: choose an online CPU (the list of them cannot be read: " + path +
                       ": No such file or directory)"));
  kernel_.files[path] = "4294967295\n";
  EXPECT_THAT(explained(Kind::OpenError, ENODEV),
              EndsWith("cannot be read: " + path + ": not a list of CPUs: '4294967295')"));
}

// A change of the machine after the failure does not change the error's text.
TEST_F(PerfBufferErrorAdviceTest, TheAdviceIsWhatWasTrueAtTheFailure) {
  std::optional<std::string>& paranoid = kernel_.files["/proc/sys/kernel/perf_event_paranoid"];
  std::optional<std::string>& limit = kernel_.files["/proc/sys/kernel/perf_event_mlock_kb"];
  std::optional<std::string>& online = kernel_.files["/sys/devices/system/cpu/online"];
  paranoid = "3\n";
  limit = "516\n";
  online = "1-2\n";
  const auto failed = [&](int error) {
    kernel_.open_errno = error;
    return PerfBuffer::open(0, 1).error();
  };
  const PerfBufferError denied = failed(EACCES);
  const PerfBufferError no_cpu = failed(ENODEV);
  const PerfBufferError no_room = PerfBufferError::at_failure(Kind::MMapError, code(EPERM), 0, 1);
  auto array = *PerfEventArray::from_fd(0);
  const PerfEventArrayError from_array = array.open(0).error();
  paranoid = std::nullopt;
  limit = "0\n";
  online = "0-2\n";
  EXPECT_THAT(denied.explain(), HasSubstr("\nto change: kernel.perf_event_paranoid is 3: "));
  EXPECT_THAT(denied.advice, StartsWith("kernel.perf_event_paranoid is 3: "));
  EXPECT_THAT(no_cpu.explain(), EndsWith("choose an online CPU (online CPUs: 1-2)"));
  EXPECT_THAT(no_room.explain(), HasSubstr("perf_event_mlock_kb is 516 "));
  EXPECT_THAT(from_array.explain(), EndsWith("choose an online CPU (online CPUs: 1-2)"));
}

}  // namespace
}  // namespace perfring
