#include "harness/program/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/program/child_process.h"
#include "harness/program/console.h"
#include "harness/program/privileges.h"
#include "harness/program/read_file.h"
#include "harness/program/temporary_folder.h"

namespace perfring {
namespace {

namespace fs = std::filesystem;

// Each test has its own folder, in which no other file may be left.
class OutputFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() / name; }
  std::string holding(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    std::ofstream{path(name)} << text;
    ::chmod(path(name).c_str(), mode);
    return path(name);
  }
  static std::string text_of(const std::string& file) {
    return read_file(file).value_or("not readable");
  }
  static mode_t mode_of_file(const std::string& file) {
    struct stat of{};
    return ::stat(file.c_str(), &of) == 0 ? of.st_mode & 07777U : 0;
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator{folder_.path()}, fs::directory_iterator{});
  }
  // Calls `done` while no file may be longer than this.
  template <class Done>
  static void with_files_of(rlim_t bytes, Done done) {
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit old{};
    ::getrlimit(RLIMIT_FSIZE, &old);
    const rlimit small{bytes, old.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    done();
    ::setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, before);
  }
  void SetUp() override { umask_ = ::umask(022); }
  void TearDown() override { ::umask(umask_); }

 private:
  TemporaryFolder folder_;
  mode_t umask_ = 0;
};

using WriteOutputTest = OutputFileTest;
using GrowingFileTest = OutputFileTest;

// A pipe stands for a device such as /dev/null.
TEST_F(WriteOutputTest, OtherThanFilesKeepTheirMode) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(pipe.c_str(), 0666), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(write_output("--dump", pipe, "text", Readers::OwnerAlone));
  EXPECT_EQ(mode_of_file(pipe), 0666U);
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof(text)), 4);
  ::close(reader);
}

TEST_F(WriteOutputTest, WritesAllOrReportsAnError) {
  ASSERT_TRUE(write_output("--to", path("output"), "text").has_value());
  EXPECT_EQ(text_of(path("output")), "text");
  EXPECT_EQ(write_output("--to", "/dev/full", "text").error(),
            "--to: '/dev/full' cannot be written: No space left on device");
  EXPECT_EQ(write_output("--to", "/nowhere/x", "text").error(),
            "--to: '/nowhere/x' cannot be written: No such file or directory");
  EXPECT_TRUE(write_output("--to", "/dev/null", "text").has_value());
}

TEST_F(WriteOutputTest, AFileThatCannotBeReplacedStaysAsItWas) {
  const std::string old = holding("old", "of value");
  with_files_of(1000, [&] {
    EXPECT_THAT(write_output("--to", old, std::string(5000, 'x')).error(),
                ::testing::HasSubstr("cannot be written: File too large"));
  });
  EXPECT_EQ(text_of(old), "of value");
  EXPECT_EQ(files(), 1) << "nothing else is left";
}

TEST_F(WriteOutputTest, WritesThroughSymlinkKeepingMode) {
  const std::string old = holding("old", "a longer text than the new one", 0604);
  fs::create_symlink("old", path("link"));
  ASSERT_TRUE(write_output("--to", path("link"), "new").has_value());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text_of(old), "new");
  EXPECT_EQ(mode_of_file(old), 0604U);
  ASSERT_TRUE(write_output("--to", path("other"), "new").has_value());
  EXPECT_EQ(mode_of_file(path("other")), 0644U) << "as the umask has it";
  fs::create_symlink("nowhere", path("dangling"));
  ASSERT_TRUE(write_output("--to", path("dangling"), "new").has_value());
  EXPECT_EQ(text_of(path("nowhere")), "new");
  EXPECT_EQ(files(), 5);
}

TEST_F(WriteOutputTest, OneForItsOwnerAloneIsNobodyElses) {
  const std::string old = holding("old", "of value");
  for (const std::string& each : {old, path("new")}) {
    ASSERT_TRUE(check_output("--to", each, Readers::OwnerAlone).has_value());
    ASSERT_TRUE(write_output("--to", each, "text", Readers::OwnerAlone).has_value());
    EXPECT_EQ(mode_of_file(each), 0600U) << each;
    EXPECT_EQ(text_of(each), "text");
  }
  ::umask(0);
  ASSERT_TRUE(check_output("--to", path("checked"), Readers::OwnerAlone).has_value());
  EXPECT_EQ(mode_of_file(path("checked")), 0600U);
}

constexpr uid_t kNobody = 65534;

// Otherwise the old file's owner could read data that only root may see.
TEST_F(WriteOutputTest, OneForItsOwnerAloneIsItsWriters) {
  if (!is_root()) GTEST_SKIP() << "only root has files of others";
  const std::string old = holding("old", "of value");
  for (const Readers readers : {Readers::AsUsual, Readers::OwnerAlone}) {
    ASSERT_EQ(::chown(old.c_str(), kNobody, kNobody), 0);
    ASSERT_TRUE(write_output("--to", old, "text", readers).has_value());
    struct stat of{};
    ASSERT_EQ(::stat(old.c_str(), &of), 0);
    EXPECT_EQ(of.st_uid, readers == Readers::AsUsual ? kNobody : 0);
  }
}

// The folder takes new files, but a file that replaces the old one would belong to the writer.
TEST_F(WriteOutputTest, AFileOfAnotherIsWrittenOver) {
  if (!is_root()) GTEST_SKIP() << "only root makes a file of another's";
  const std::string old = holding("old", "a longer text than the new one", 0666);
  fs::permissions(fs::path{old}.parent_path(), fs::perms{0777});
  ForkedChild nobody{[&] {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 2;
    return write_output("--to", old, "new").has_value() ? 0 : 1;
  }};
  EXPECT_EQ(nobody.wait(), 0);
  EXPECT_EQ(text_of(old), "new");
  struct stat of{};
  ASSERT_EQ(::stat(old.c_str(), &of), 0);
  EXPECT_EQ(of.st_uid, 0U);
  EXPECT_EQ(files(), 1);
}

// Another descriptor has the file open, and must still lead to the same file afterwards.
TEST_F(WriteOutputTest, ALinkOfTheSystemsIsWrittenThrough) {
  const std::string old = holding("old", "a longer text than the new one");
  const os::Fd file{::open(old.c_str(), O_RDWR | O_CLOEXEC)};
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  ASSERT_TRUE(write_output("--to", link, "new").has_value());
  struct stat of{};
  ASSERT_EQ(::fstat(file.get(), &of), 0);
  EXPECT_EQ(of.st_nlink, 1U);
  EXPECT_EQ(text_of(old), "a longer text than the new onenew") << "as by >>";
}

TEST_F(WriteOutputTest, AFolderThatTakesNoFilesIsNoObstacle) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write to every folder";
  const std::string old = holding("old", "a longer text than the new one");
  fs::permissions(fs::path{old}.parent_path(), fs::perms{0555});
  EXPECT_TRUE(write_output("--to", old, "new").has_value());
  EXPECT_EQ(text_of(old), "new");
  fs::permissions(old, fs::perms{0444});
  EXPECT_FALSE(write_output("--to", old, "newer").has_value());
  fs::permissions(fs::path{old}.parent_path(), fs::perms{0755});
  EXPECT_FALSE(write_output("--to", old, "newer").has_value()) << "nor is it replaced";
  EXPECT_EQ(text_of(old), "new");
}

// Writes the text to a GrowingFile. Returns why that failed, or "".
std::string grow(const std::string& path, const std::string& text) {
  GrowingFile file{path};
  if (std::string why = file.open(); !why.empty()) return why;
  int error = file.begin();
  if (error == 0) error = write_all(file.fd(), text);
  if (error == 0) error = file.end();
  return error == 0 ? "" : file.why(error);
}

// perf 6.1 does the same, as its files showed.
TEST_F(GrowingFileTest, AFileThatIsNotEmptyBecomesOld) {
  const std::string old = holding("x", "first");
  EXPECT_EQ(grow(old, "second"), "");
  EXPECT_EQ(text_of(old), "second");
  EXPECT_EQ(text_of(old + ".old"), "first");
  EXPECT_EQ(mode_of_file(old), 0600U);
  EXPECT_EQ(mode_of_file(old + ".old"), 0644U);
  EXPECT_EQ(grow(old, "third"), "");
  EXPECT_EQ(text_of(old + ".old"), "second");
  EXPECT_EQ(files(), 2);
}

TEST_F(GrowingFileTest, ItIsItsOwnersAloneWhateverWasThere) {
  ::umask(0);
  EXPECT_EQ(grow(path("new"), "text"), "");
  EXPECT_EQ(grow(holding("empty", "", 0666), "text"), "");
  fs::create_symlink("nowhere", path("dangling"));
  EXPECT_EQ(grow(path("dangling"), "text"), "");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
  for (const char* const name : {"new", "empty", "nowhere"}) {
    EXPECT_EQ(mode_of_file(path(name)), 0600U) << name;
    EXPECT_EQ(text_of(path(name)), "text") << name;
  }
  EXPECT_EQ(files(), 4) << "none became .old";
}

TEST_F(GrowingFileTest, AnEmptyFileOfAnotherBecomesItsWriters) {
  if (!is_root()) GTEST_SKIP() << "only root has files of others";
  const std::string empty = holding("empty", "", 0666);
  ASSERT_EQ(::chown(empty.c_str(), kNobody, kNobody), 0);
  EXPECT_EQ(grow(empty, "text"), "");
  struct stat of{};
  ASSERT_EQ(::stat(empty.c_str(), &of), 0);
  EXPECT_EQ(of.st_uid, 0U);
  EXPECT_EQ(mode_of_file(empty), 0600U);
}

TEST_F(GrowingFileTest, WhatWasWrittenAfterItWasOpenedStays) {
  GrowingFile file{path("x")};
  ASSERT_EQ(file.open(), "");
  holding("x", "of value");
  EXPECT_EQ(file.begin(), EEXIST);
  EXPECT_EQ(text_of(path("x")), "of value");
}

TEST_F(GrowingFileTest, ReplacesSymlinkNotItsTarget) {
  const std::string target = holding("target", "of value");
  fs::create_symlink("target", path("x"));
  EXPECT_EQ(grow(path("x"), "text"), "");
  EXPECT_FALSE(fs::is_symlink(path("x")));
  EXPECT_EQ(fs::read_symlink(path("x.old")), "target");
  EXPECT_EQ(text_of(target), "of value");
  EXPECT_EQ(mode_of_file(target), 0644U);
}

TEST_F(GrowingFileTest, WhateverFailsTheOldFileIsThere) {
  const std::string old = holding("x", "of value");
  with_files_of(1000, [&] {
    EXPECT_EQ(grow(old, std::string(5000, 'x')), "'" + old + "' cannot be written: File too large");
  });
  EXPECT_EQ(text_of(old + ".old"), "of value");
  fs::remove(old + ".old");
  fs::create_directory(old + ".old");
  holding("x", "again of value");
  EXPECT_EQ(grow(old, "text"),
            "'" + old + "' cannot be renamed to '" + old + ".old': Is a directory");
  EXPECT_EQ(text_of(old), "again of value");
  EXPECT_THAT(grow(fs::path{old}.parent_path(), "text"), ::testing::HasSubstr("Is a directory"));
  {
    GrowingFile file{old};
    EXPECT_EQ(file.open(), "");
  }
  EXPECT_EQ(text_of(old), "again of value") << "it has not begun";
}

TEST_F(GrowingFileTest, WhatALinkOfTheSystemsLeadsToIsNotMoved) {
  const std::string old = holding("old", "of value");
  const os::Fd file{::open(old.c_str(), O_RDWR | O_CLOEXEC)};
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  EXPECT_EQ(grow(link, "text"),
            "'" + link + "' leads to a file that is not empty: give that file's own name");
  EXPECT_EQ(text_of(old), "of value");
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  EXPECT_EQ(grow(link, "text"), "");
  EXPECT_EQ(text_of(old), "text");
  EXPECT_EQ(mode_of_file(old), 0644U) << "the shell's, as of any other program's stdout";
}

}  // namespace
}  // namespace perfring
