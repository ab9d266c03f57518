// The texts of a PerfEventArray's errors. The tests build each error by hand; harness/live provokes
// them on a kernel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event_array_error.h"
#include "perfring/perfring.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = PerfBufferError::Kind;

std::error_code code_of(int error) {
  return {error, std::generic_category()};
}

TEST(PerfEventArrayErrorTest, HasTheTextsOfThePerfBufferErrorInIt) {
  const PerfBufferError buffer =
      PerfBufferError::at_failure(Kind::OpenError, code_of(EMFILE), 3, 2);
  const PerfEventArrayError error{buffer};
  EXPECT_EQ(error.message(), buffer.message());
  EXPECT_EQ(error.explain(), buffer.explain());
}

TEST(PerfEventArrayErrorTest, NamesAWrongMapType) {
  const PerfEventArrayError error{InvalidMapType{2}};
  EXPECT_EQ(error.message(), "invalid map type 2");
  EXPECT_EQ(error.explain(),
            "asked for: a PerfEventArray over a map\n"
            "the system said: the map is of type 2 (enum bpf_map_type)\n"
            "to change: give a map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY (4)");
}

TEST(PerfEventArrayErrorTest, NamesFailedCallWithItsObject) {
  const std::pair<int, const char*> advice[]{{EBADF, "moved from"},
                                             {EINVAL, "bpffs"},
                                             {EPERM, "CAP_BPF"},
                                             {EACCES, "CAP_BPF"},
                                             {ENOENT, "a path that exists"},
                                             {EEXIST, "another path"},
                                             {EMFILE, "ulimit -n"},
                                             {ENFILE, "fs.file-max"},
                                             {ENOSYS, "CONFIG_BPF_SYSCALL"},
                                             {EIO, "see bpf(2)"}};
  for (const auto& [error, change] : advice) {
    const PerfEventArrayError failed{SyscallError{"bpf_obj_pin", "/somewhere/pin", code_of(error)}};
    EXPECT_EQ(failed.message(), "`bpf_obj_pin` failed: " + code_of(error).message());
    EXPECT_THAT(
        failed.explain(),
        AllOf(HasSubstr("asked for: bpf_obj_pin of /somewhere/pin\n"),
              HasSubstr("the system said: " + code_of(error).message() + "\n"), HasSubstr(change)));
  }
}

// The advice depends on the call that failed, not only on its error code.
TEST(PerfEventArrayErrorTest, AdvisesOnTheCallThatFailed) {
  const auto advice = [](const char* call, int error) {
    const std::string text = PerfEventArrayError{SyscallError{call, "X", code_of(error)}}.explain();
    return text.substr(text.find("to change: ") + 11);
  };
  EXPECT_EQ(advice("bpf_obj_get_info_by_fd", EINVAL), "give a BPF map");
  EXPECT_EQ(advice("bpf_obj_pin", EINVAL), "give a path on a bpffs (mount -t bpf bpf /sys/fs/bpf)");
  EXPECT_EQ(advice("bpf_obj_get", EINVAL), advice("bpf_obj_pin", EINVAL));
  EXPECT_EQ(advice("fcntl(F_DUPFD_CLOEXEC)", EBADF), "give the descriptor of an open BPF map");
  EXPECT_EQ(advice("bpf_obj_pin", EBADF), "use an array that has not been moved from");
  EXPECT_EQ(advice("fcntl(F_DUPFD_CLOEXEC)", EPERM),
            "change the seccomp or LSM policy that forbids it: the kernel itself does not");
  EXPECT_THAT(advice("bpf_obj_get_info_by_fd", EPERM),
              AllOf(HasSubstr("CAP_BPF"), Not(HasSubstr("path"))));
  EXPECT_EQ(advice("bpf_obj_pin", EFAULT), "give a path instead of a null pointer");
  EXPECT_EQ(advice("bpf_obj_get_info_by_fd", EFAULT), "see bpf(2) for this error");
  EXPECT_EQ(advice("bpf_obj_get_info_by_fd", EBADFD), "open the map without O_PATH");
}

TEST(PerfEventArrayErrorTest, AdvisesOnTheEntryThatCouldNotBeChanged) {
  const auto advice = [](const char* call, int error) {
    const std::string text = PerfEventArrayError{SyscallError{call, "X", code_of(error)}}.explain();
    return text.substr(text.find("to change: ") + 11);
  };
  EXPECT_EQ(advice("bpf_map_update_elem", EBADF),
            "give the descriptor of an open perf event, and use an array that has not been moved "
            "from");
  EXPECT_EQ(advice("bpf_map_delete_elem", EBADF), "use an array that has not been moved from");
  EXPECT_EQ(advice("bpf_map_update_elem", EOPNOTSUPP),
            "open the event without attr.inherit: the kernel refuses such an event as an entry");
  EXPECT_EQ(advice("bpf_map_delete_elem", ENOENT), "nothing: the entry is empty already");
  for (const char* const call : {"bpf_map_update_elem", "bpf_map_delete_elem"}) {
    for (const int error : {EPERM, EACCES}) {
      EXPECT_EQ(advice(call, error),
                "run with CAP_BPF (before Linux 5.8: CAP_SYS_ADMIN), and give a map that is "
                "neither read-only nor frozen");
    }
    EXPECT_EQ(advice(call, EIO), "see bpf(2) for this error");
  }
}

TEST(PerfEventArrayErrorTest, NamesAnIndexThatTheMapDoesNotHave) {
  const PerfEventArrayError error{OutOfBounds{9, 4}};
  EXPECT_EQ(error.message(), "the index is 9 but `max_entries` is 4");
  EXPECT_EQ(error.explain(),
            "asked for: entry 9 of a map with 4\n"
            "the system said: nothing: perfring checks this before any system call\n"
            "to change: use an index below the map's max_entries, or give the map an entry for "
            "each possible CPU");
}

TEST(PerfEventArrayErrorTest, AHandMadeErrorMayNameNoCall) {
  const PerfEventArrayError error{SyscallError{nullptr, "X", code_of(EIO)}};
  EXPECT_EQ(error.message(), "`a system call` failed: " + code_of(EIO).message());
  EXPECT_EQ(error.explain(), "asked for: a system call of X\nthe system said: " +
                                 code_of(EIO).message() + "\nto change: see bpf(2) for this error");
}

TEST(PerfEventArrayErrorTest, RefusesDescriptorsThatAreNoMap) {
  const auto closed = PerfEventArray::from_fd(-1);
  ASSERT_FALSE(closed.has_value());
  EXPECT_THAT(closed.error().message(), EndsWith(code_of(EBADF).message()));
  EXPECT_THAT(closed.error().explain(), HasSubstr("map fd -1"));
  // For a file that is not a map, the error names the caller's descriptor, not the library's
  // duplicate.
  const auto file = PerfEventArray::from_fd(0);
  ASSERT_FALSE(file.has_value());
  EXPECT_THAT(file.error().explain(), HasSubstr("asked for: bpf_obj_get_info_by_fd of map fd 0\n"));
  const auto missing = PerfEventArray::from_pin("/nonexistent/pin");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().explain(), HasSubstr("bpf_obj_get of /nonexistent/pin"));
}

}  // namespace
}  // namespace perfring
