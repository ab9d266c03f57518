// The examples of README.md and docs/cookbook.md compile as they are, and the README's reports an
// error if there is no map.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "perfring/perfring.h"

namespace {

using namespace perfring;

// The example leaves these functions to its reader.
void handle(perfring::Bytes, perfring::Bytes) {}
void count(std::uint64_t) {}

int example(int map_fd) {
#include "lib/perfring/readme_example.inc"
  return 0;
}

void use(const PerfEvent&) {}
#include "lib/perfring/readme_loop.inc"
// The loop needs a kernel; this test only compiles it.
TEST(ReadmeTest, DrainLoopHasExpectedSignature) {
  int (*const loop)(PerfEventArray&, const std::atomic<bool>&) = drain_every_cpu;
  EXPECT_NE(loop, nullptr);
}

TEST(ReadmeTest, TheExampleSaysWhatFailed) {
  ::testing::internal::CaptureStdout();
  EXPECT_GT(example(-1), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              ::testing::HasSubstr("asked for: fcntl(F_DUPFD_CLOEXEC) of map fd -1\n"));
}

}  // namespace
