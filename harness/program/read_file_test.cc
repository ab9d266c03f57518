#include "harness/program/read_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "harness/program/temporary_folder.h"

namespace perfring {
namespace {

TEST(ReadFileTest, AllBytesAreRead) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "file";
  for (const std::string& bytes : {std::string{}, std::string{"a\0\n\xff", 4},
                                   std::string(4096, 'p'), std::string(9000, 'q')}) {
    std::ofstream{path, std::ios::binary} << bytes;
    EXPECT_EQ(read_file(path), bytes);
  }
}

TEST(ReadFileTest, WhatCannotBeReadIsNothing) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_file(folder.path() / "absent"), std::nullopt);
  EXPECT_EQ(read_file(folder.path()), std::nullopt) << "read(2) fails with EISDIR";
  EXPECT_EQ(read_file("/proc/self/mem"), std::nullopt) << "read(2) fails with EIO";
}

}  // namespace
}  // namespace perfring
