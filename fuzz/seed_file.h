#ifndef FUZZ_SEED_FILE_H_
#define FUZZ_SEED_FILE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "harness/program/read_file.h"

namespace perfring::fuzz {

// Returns the bytes of a seed. The test fails if it cannot be read.
inline std::string read_seed(const std::filesystem::path& path) {
  auto bytes = read_file(path);
  if (!bytes) ADD_FAILURE() << path << " cannot be read";
  return std::move(bytes).value_or(std::string{});
}

}  // namespace perfring::fuzz

#endif  // FUZZ_SEED_FILE_H_
