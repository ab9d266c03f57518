#include "harness/program/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace perfring {
namespace {

using ::testing::HasSubstr;

std::string file_of(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/input";
  std::ofstream{path, std::ios::binary} << text;
  return path;
}

TEST(ReadInputTest, ReadsUpToTheLimit) {
  EXPECT_EQ(read_input("--file", file_of("two\nlines")).value(), "two\nlines");
  EXPECT_EQ(read_input("--file", file_of(std::string(kMiB, 'x')))->size(), kMiB);
}

TEST(ReadInputTest, RefusesWithTheOptionTheFileAndTheReason) {
  const std::string large = file_of(std::string(kMiB + 1, 'x'));
  EXPECT_EQ(read_input("--file", large).error(),
            "--file: '" + large + "' is larger than 1 MiB: give a smaller file");
  EXPECT_EQ(read_input("--file", "/nowhere").error(),
            "--file: '/nowhere' cannot be read: No such file or directory");
  EXPECT_EQ(read_input("--file", "/").error(), "--file: '/' cannot be read: Is a directory");
  EXPECT_EQ(read_input("--file", "/dev/null").error(), "--file: '/dev/null' is empty");
  EXPECT_THAT(read_input("--file", "/dev/zero").error(), HasSubstr("is larger than 1 MiB"));
  EXPECT_THAT(read_input("--file", file_of(std::string{"ab\0", 3})).error(),
              HasSubstr("is not text: its byte 2 is 0"));
}

TEST(ReadInputTest, BinaryContentMayHoldAnyByte) {
  const std::string bytes{"ab\0", 3};
  EXPECT_EQ(read_input("--file", file_of(bytes), kMiB, Content::Binary).value(), bytes);
  EXPECT_EQ(read_input("--file", "/dev/null", kMiB, Content::Binary).value(), "");
}

TEST(WriteOutputTest, WritesAllOrSaysWhyNot) {
  const std::string path = ::testing::TempDir() + "/output";
  ASSERT_TRUE(write_output("--to", path, "text").has_value());
  std::stringstream written;
  written << std::ifstream{path}.rdbuf();
  EXPECT_EQ(written.str(), "text");
  EXPECT_EQ(write_output("--to", "/dev/full", "text").error(),
            "--to: '/dev/full' cannot be written: No space left on device");
  EXPECT_EQ(write_output("--to", "/nowhere/x", "text").error(),
            "--to: '/nowhere/x' cannot be written: No such file or directory");
}

}  // namespace
}  // namespace perfring
