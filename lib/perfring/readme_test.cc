// The README's first example, as it stands there: it compiles, and where there is no map it says
// why instead of going on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "perfring/perfring.h"

namespace {

// What the example leaves to its reader.
void handle(perfring::Bytes, perfring::Bytes) {}
void count(std::uint64_t) {}

int example(int map_fd) {
#include "lib/perfring/readme_example.inc"
  return 0;
}

TEST(Readme, TheExampleSaysWhatFailed) {
  ::testing::internal::CaptureStdout();
  EXPECT_GT(example(-1), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              ::testing::HasSubstr("asked for: fcntl(F_DUPFD_CLOEXEC) of map fd -1\n"));
}

}  // namespace
