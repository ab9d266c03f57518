// golden/ holds the traces of each program and its faults, as the checker found them once.
// `golden_test --write FOLDER` writes it anew.

#include "harness/model/golden.h"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace perfring::model {
namespace {

constexpr const char* kFolder = "harness/model/golden";

std::string contents(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

// The traces are of a little-endian machine. Elsewhere, the words of a record that has smaller
// numbers in it (header, u32 size) are other ones, and so is the width of a column.
std::string comparable(const std::string& text) {
  if (std::endian::native == std::endian::little) return text;
  return std::regex_replace(text, std::regex{"0x[0-9a-f]+| +"}, " ");
}

TEST(GoldenTest, EachTraceEqualsItsFileAndEachFileHasATrace) {
  std::set<std::string> names;
  for (const auto& [name, text] : golden_traces()) {
    names.insert(name);
    const std::string kept = contents(std::filesystem::path{kFolder} / name);
    EXPECT_EQ(comparable(kept), comparable(text)) << name;
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator{kFolder}) {
    if (file.is_directory()) continue;
    EXPECT_TRUE(names.contains(file.path().lexically_relative(kFolder))) << file.path();
  }
}

void write(const std::filesystem::path& folder) {
  for (const auto& [name, text] : golden_traces()) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream{folder / name} << text;
  }
}

}  // namespace
}  // namespace perfring::model

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string{argv[1]} == "--write") {
    perfring::model::write(argv[2]);
    return 0;
  }
  return RUN_ALL_TESTS();
}
