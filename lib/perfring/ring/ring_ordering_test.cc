// The real policy against a producer thread, in every build; and, under ThreadSanitizer, each edge
// removed in turn, which ThreadSanitizer must report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace perfring {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  int exit_code;
  std::string output;
};

Ended run(const std::string& drain) {
  const char* binary = std::getenv("FAULTS");
  if (binary == nullptr) return {-1, "FAULTS is not set"};
  // Stop at the first race: with an edge missing there are thousands.
  const std::string command =
      "TSAN_OPTIONS=\"$TSAN_OPTIONS halt_on_error=1 exitcode=66\" $PERFRING_RUN_UNDER " +
      std::string{binary} + " " + drain + " 2>&1";
  // popen() rather than harness/program/child_process.h: lib's tests depend on lib alone.
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

class RingOrderingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RingOrderingTest, DeliversRecordsInOrderWithoutDataRace) {
  const Ended ended = run(GetParam());
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("records, 0 wrong"));
  EXPECT_THAT(ended.output, Not(HasSubstr("ThreadSanitizer")));
}
INSTANTIATE_TEST_SUITE_P(Drains, RingOrderingTest,
                         ::testing::Values("none", "commit_each", "cursor"));

#ifdef PERFRING_TEST_UNDER_TSAN

class RingOrderingFaultTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RingOrderingFaultTest, IsReportedAsADataRace) {
  const Ended ended = run(GetParam());
  EXPECT_EQ(ended.exit_code, 66) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("WARNING: ThreadSanitizer: data race"));
}
INSTANTIATE_TEST_SUITE_P(EachEdge, RingOrderingFaultTest,
                         ::testing::Values("no_acquire_fence", "no_full_fence",
                                           "cursor_no_acquire_fence", "cursor_no_full_fence"));

#endif

}  // namespace
}  // namespace perfring
