// What the checker finds is what it found: golden/ holds the trace of each mutant.
// `golden_test --write FOLDER` writes it anew.

#include "harness/model/golden.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

TEST(Golden, EachTraceIsTheOneThatIsKept) {
  std::set<std::string> names;
  for (const auto& [name, text] : golden_traces()) {
    names.insert(name);
    EXPECT_EQ(contents(std::filesystem::path{kFolder} / name), text) << name;
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
