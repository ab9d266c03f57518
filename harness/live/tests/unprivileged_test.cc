// Runs the live tests as a user without privileges: each is skipped with the reason, and no test
// that needs the kernel passes. The environment variable LIVE_TEST has the path of their program.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "harness/live/live_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/privileges.h"
#include "harness/program/temporary_folder.h"
#include "perfring/os/cpus.h"

namespace perfring::live {
namespace {

namespace fs = std::filesystem;

fs::path copy_of(const fs::path& file, const TemporaryFolder& folder) {
  const fs::path copy = folder.path() / file.filename();
  fs::copy_file(file, copy);
  fs::permissions(copy, fs::perms{0755});
  return copy;
}

// Returns the output of a program run as the user nobody, and "[exit STATUS]".
std::string run_as_nobody(const fs::path& program) {
  return in_child([&] {
    become(kNobody);
    // Drop Bazel's variables, some of which say where to report.
    const ProcessResult ended = run_child({"/usr/bin/env", "-i", program});
    return ended.out + ended.err + "[exit " + std::to_string(ended.exit_code) + "]\n";
  });
}

// Returns the names on the lines of GoogleTest's report that start with `mark` and end with a
// duration.
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

std::size_t count_of(const std::string& words, const std::string& report) {
  std::size_t count = 0;
  for (std::size_t at = report.find(words); at != report.npos; at = report.find(words, at + 1)) {
    ++count;
  }
  return count;
}

TEST(UnprivilegedLiveTest, EachLiveTestIsSkippedWithTheReason) {
  if (!is_root()) GTEST_SKIP() << "only root can become nobody";
  if (!os::online_cpus()) GTEST_SKIP() << "sysfs, which lists the online CPUs, is not mounted";
  const char* program = std::getenv("LIVE_TEST");
  ASSERT_NE(program, nullptr) << "LIVE_TEST is to name the live tests' program";
  const TemporaryFolder folder;
  const std::string report = run_as_nobody(copy_of(program, folder));
  EXPECT_THAT(report, testing::EndsWith("[exit 0]\n"));
  const std::vector<std::string> skipped = marked(report, "[  SKIPPED ] ");
  EXPECT_FALSE(skipped.empty());
  EXPECT_GE(count_of("no privilege for ", report), skipped.size());
  for (const std::string& name : marked(report, "[       OK ] ")) {
    EXPECT_THAT(name, testing::HasSubstr("ArgumentsTest.")) << "passed without a kernel";
  }
}

}  // namespace
}  // namespace perfring::live
