#include "perfring/os/cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace perfring::os {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = OnlineCpusError::Kind;

TEST(AyaOnlineCpusTest, ParseOnlineCpus) {
  const std::vector<std::uint32_t> eight{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(parse_cpu_list("0").value(), ElementsAre(0));
  EXPECT_THAT(parse_cpu_list("0,1").value(), ElementsAre(0, 1));
  EXPECT_THAT(parse_cpu_list("0,1,2").value(), ElementsAre(0, 1, 2));
  for (const char* text : {"0-7", "0-3,4-7", "0-5,6,7"})
    EXPECT_EQ(parse_cpu_list(text).value(), eight);
  for (const char* text : {"", "0-1,2-", "foo"}) EXPECT_FALSE(parse_cpu_list(text)) << text;
}

TEST(CpuListTest, ParsesValidCpuLists) {
  EXPECT_THAT(parse_cpu_list("0").value(), ElementsAre(0));
  EXPECT_THAT(parse_cpu_list("0-3").value(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(parse_cpu_list("0-1,4,10-11").value(), ElementsAre(0, 1, 4, 10, 11));
  EXPECT_THAT(parse_cpu_list("3-3").value(), ElementsAre(3));
  EXPECT_THAT(parse_cpu_list("65535").value(), ElementsAre(65535));
  EXPECT_THAT(parse_cpu_list("65534-65535").value(), ElementsAre(65534, 65535));
}

TEST(CpuListTest, RefusesTextThatIsNoCpuList) {
  for (const char* text :
       {"", " ", "-", "a", "0-", "-1", "3-2", "0,", ",0", "0,,1", "0 1", "0-1-2", "0x1", "+1",
        "65536", "4294967295", "4294967296", "4294967295-0", "1\n"}) {
    EXPECT_FALSE(parse_cpu_list(text).has_value()) << text;
  }
}

TEST(CpuListTest, CpusAboveTheBoundAreRefused) {
  EXPECT_EQ(parse_cpu_list("0-65535").value().size(), 65536U);
  EXPECT_FALSE(parse_cpu_list("0-65536").has_value());
  EXPECT_FALSE(parse_cpu_list("0-4294967295").has_value());
  EXPECT_FALSE(parse_cpu_list("0-65534,0-1").has_value());
}

TEST(CpuListTest, RunsOfCpusAreWrittenAsRanges) {
  for (const char* text : {"0", "0-1", "0-3,8,10-11", "1,3,5", "65535"}) {
    EXPECT_EQ(to_cpu_list(parse_cpu_list(text).value()), text);
  }
  EXPECT_EQ(to_cpu_list({}), "");
  EXPECT_EQ(to_cpu_list(std::vector<std::uint32_t>{3, 2, 2}), "3,2,2");
  const std::array<std::uint32_t, 3> cpus{4, 5, 6};
  EXPECT_EQ(to_cpu_list(std::span{cpus}.first(2)), "4-5") << "it reads nothing after the span";
}

// A file for the test to write.
class CpuListFileTest : public ::testing::Test {
 protected:
  auto read(const std::string& text) {
    std::ofstream{path_, std::ios::binary} << text;
    return read_cpu_list(path_.c_str());
  }

  OnlineCpusError refused(const std::string& text) {
    auto cpus = read(text);
    if (cpus) {
      ADD_FAILURE() << cpus->size() << " CPUs";
      return {};
    }
    return cpus.error();
  }

  const std::string path_ = ::testing::TempDir() + "/cpu_list";
};

TEST(OnlineCpusTest, TheCpusAreThoseThatTheKernelLists) {
  const auto cpus = online_cpus();
  if (!cpus && cpus.error().io_error == std::errc::no_such_file_or_directory) {
    GTEST_SKIP() << "sysfs, which lists the online CPUs, is not mounted";
  }
  ASSERT_TRUE(cpus.has_value()) << cpus.error().message();
  EXPECT_EQ(cpus->size(), static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(to_cpu_list(*cpus), read_line("/sys/devices/system/cpu/online"));
}

TEST_F(CpuListFileTest, BlanksAroundTheListAreAllowed) {
  EXPECT_THAT(read("0-1,4\n").value(), ElementsAre(0, 1, 4));
  EXPECT_THAT(read("7").value(), ElementsAre(7));
  EXPECT_THAT(read(" 7\t\r\n").value(), ElementsAre(7));
}

// Every second number, as on a large machine with its second hardware threads switched off.
TEST_F(CpuListFileTest, ALongListIsReadCompletely) {
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t cpu = 0; cpu < 65536; cpu += 2) cpus.push_back(cpu);
  const std::string text = to_cpu_list(cpus);
  ASSERT_GT(text.size(), 40U * 4096);
  EXPECT_EQ(read(text + "\n").value(), cpus);
}

TEST_F(CpuListFileTest, AMissingFileIsAnErrorWithItsPath) {
  const auto cpus = read_cpu_list("/nonexistent/online");
  ASSERT_FALSE(cpus.has_value());
  EXPECT_EQ(cpus.error().kind, Kind::IOError);
  EXPECT_EQ(cpus.error().path, "/nonexistent/online");
  EXPECT_EQ(cpus.error().io_error, std::errc::no_such_file_or_directory);
  EXPECT_EQ(cpus.error().message(), "/nonexistent/online: No such file or directory");
  EXPECT_EQ(cpus.error().explain(),
            "asked for: the online CPUs, which /nonexistent/online lists\n"
            "the system said: No such file or directory\n"
            "to change: mount sysfs (mount -t sysfs sysfs /sys)");
}

TEST_F(CpuListFileTest, ANullPointerIsAnError) {
  const auto cpus = read_cpu_list(nullptr);
  ASSERT_FALSE(cpus.has_value());
  EXPECT_EQ(cpus.error().io_error, std::errc::bad_address);
  EXPECT_EQ(cpus.error().message(), "a null pointer: Bad address");
  EXPECT_EQ(read_line(nullptr), std::nullopt);
}

TEST_F(CpuListFileTest, AFileThatCannotBeReadIsAnError) {
  const auto cpus = read_cpu_list("/");
  ASSERT_FALSE(cpus.has_value());
  EXPECT_EQ(cpus.error().kind, Kind::IOError);
  EXPECT_EQ(cpus.error().io_error, std::errc::is_a_directory);
  EXPECT_EQ(cpus.error().explain(),
            "asked for: the online CPUs, which / lists\n"
            "the system said: Is a directory\n"
            "to change: let this process read the file");
}

TEST_F(CpuListFileTest, RefusesEmptyList) {
  EXPECT_EQ(refused("3-2\n").kind, Kind::InvalidData);
  for (const char* text : {"", "\n", " \t\r\n"}) {
    const OnlineCpusError error = refused(text);
    EXPECT_EQ(error.kind, Kind::InvalidData);
    EXPECT_EQ(error.io_error, std::errc::invalid_argument);
    EXPECT_EQ(error.data, "");
    EXPECT_EQ(error.message(), path_ + ": empty, not a list of CPUs");
    EXPECT_THAT(error.explain(), HasSubstr("\nthe system said: nothing, the file is empty\n"));
  }
}

TEST(OnlineCpusErrorTest, AnUnknownKindHasTheTextsOfInvalidData) {
  const OnlineCpusError error{Kind{9}, "/file", {}, "x"};
  EXPECT_EQ(error.message(), "/file: not a list of CPUs: 'x'");
  EXPECT_THAT(error.explain(), HasSubstr("\nthe system said: 'x'\n"));
}

TEST_F(CpuListFileTest, OtherTextIsAnErrorThatShowsIt) {
  for (const char* text : {"abc", "0-", "3-2", "0-1\n0", "0;1", "4294967295", "0-65536"}) {
    const OnlineCpusError error = refused(std::string{text} + '\n');
    EXPECT_EQ(error.kind, Kind::InvalidData);
    EXPECT_EQ(error.path, path_);
    EXPECT_EQ(error.io_error, std::errc::invalid_argument);
    EXPECT_EQ(error.data, text);
  }
  EXPECT_EQ(refused("0-\n").message(), path_ + ": not a list of CPUs: '0-'");
  EXPECT_EQ(
      refused("0-\n").explain(),
      "asked for: the online CPUs, which " + path_ +
          " lists\n"
          "the system said: '0-'\n"
          "to change: unmount what hides the kernel's own file, which has a list such as 0-3,8");
}

TEST_F(CpuListFileTest, ControlCharactersAreShownEscaped) {
  using namespace std::string_literals;
  EXPECT_EQ(refused("0\0-1"s).message(), path_ + ": not a list of CPUs: '0\\x00-1'");
  EXPECT_EQ(refused("\x1b[2J~\x7f\xff").message(),
            path_ + ": not a list of CPUs: '\\x1b[2J~\\x7f\\xff'");
}

TEST_F(CpuListFileTest, TenMegabytesAreAnErrorThatShowsTheirBeginning) {
  const OnlineCpusError error = refused(std::string(10 << 20, 'x'));
  EXPECT_EQ(error.data, std::string(64, 'x'));
  EXPECT_THAT(error.message(), EndsWith(": 'xxxx" + std::string(60, 'x') + "'..."));
  EXPECT_THAT(error.message(), AllOf(StartsWith(path_), Not(HasSubstr(std::string(65, 'x')))));
  // Only half a megabyte is read; the text after it turns what would be a list into an error.
  constexpr std::size_t kMost = 512 * 1024;
  EXPECT_THAT(read("0" + std::string(kMost - 1, '\n')).value(), ElementsAre(0));
  EXPECT_EQ(refused("0" + std::string(kMost, '\n')).kind, Kind::InvalidData);
  EXPECT_EQ(refused("0" + std::string(10 << 20, '\n') + "1").kind, Kind::InvalidData);
}

TEST(ReadLineTest, TheFirstLineIsReturnedWithoutItsEnd) {
  const std::string path = ::testing::TempDir() + "/read_line";
  std::ofstream{path} << "first\nsecond\n";
  EXPECT_EQ(read_line(path.c_str()), "first");
  std::ofstream{path} << "";
  EXPECT_EQ(read_line(path.c_str()), "");
  const std::string line(4000, 'x');
  std::ofstream{path} << line << "\nsecond\n";
  EXPECT_EQ(read_line(path.c_str()), line);
  std::ofstream{path} << std::string(4097, 'x');
  EXPECT_EQ(read_line(path.c_str()), std::string(4096, 'x'));
  EXPECT_EQ(read_line("/nonexistent"), std::nullopt);
  EXPECT_EQ(read_line("/"), std::nullopt) << "opened, but not read";
}

}  // namespace
}  // namespace perfring::os
