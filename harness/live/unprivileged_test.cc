// The live tests, run by a user who may do nothing: each is skipped, with the reason, and none
// passes that needs the kernel. Their paths are in the environment variable LIVE_TESTS.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "harness/live/process.h"

namespace perfring::live {
namespace {

namespace fs = std::filesystem;

// A folder that anybody may read, unlike Bazel's.
class PublicFolder {
 public:
  PublicFolder() {
    std::string name = fs::temp_directory_path() / "perfring_unprivileged_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
    fs::permissions(path_, fs::perms{0755});
  }
  ~PublicFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PublicFolder(const PublicFolder&) = delete;
  PublicFolder& operator=(const PublicFolder&) = delete;

  fs::path add(const fs::path& file) const {
    const fs::path copy = path_ / file.filename();
    fs::copy_file(file, copy);
    fs::permissions(copy, fs::perms{0755});
    return copy;
  }

 private:
  fs::path path_;
};

// What a program prints when nobody runs it, and "[exit STATUS]".
std::string run_as_nobody(const fs::path& program) {
  return in_child([&] {
    become(kNobody);
    ::clearenv();  // of Bazel's orders, such as where to report, too
    std::FILE* output = ::popen((program.string() + " 2>&1").c_str(), "r");
    if (output == nullptr) throw std::runtime_error("popen");
    std::string text;
    std::array<char, 4096> chunk;
    while (const std::size_t length = std::fread(chunk.data(), 1, chunk.size(), output)) {
      text.append(chunk.data(), length);
    }
    return text + "[exit " + std::to_string(::pclose(output)) + "]\n";
  });
}

// The names on the lines of GoogleTest's report that start with `mark` and end with a duration.
std::vector<std::string> marked(const std::string& report, const std::string& mark) {
  std::vector<std::string> names;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(mark) && line.ends_with(" ms)")) {
      names.push_back(line.substr(mark.size(), line.find(" (") - mark.size()));
    }
  }
  return names;
}

TEST(Unprivileged, LiveTestsAreSkippedAndSayWhy) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
  const char* paths = std::getenv("LIVE_TESTS");
  ASSERT_NE(paths, nullptr) << "LIVE_TESTS is to name the live tests' binaries";
  std::istringstream programs(paths);
  const PublicFolder folder;
  std::size_t run = 0;
  for (std::string program; programs >> program; ++run) {
    SCOPED_TRACE(program);
    const std::string report = run_as_nobody(folder.add(program));
    EXPECT_THAT(report, testing::EndsWith("[exit 0]\n"));
    EXPECT_THAT(report, testing::HasSubstr("no privilege for "));
    EXPECT_FALSE(marked(report, "[  SKIPPED ] ").empty());
    for (const std::string& name : marked(report, "[       OK ] ")) {
      EXPECT_THAT(name, testing::HasSubstr("Arguments.")) << "passed without a kernel";
    }
  }
  EXPECT_GT(run, 0u);
}

}  // namespace
}  // namespace perfring::live
