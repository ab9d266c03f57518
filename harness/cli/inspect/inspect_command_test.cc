// Runs `perfring inspect` as processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class InspectCommandTest : public PerfringTest {
 protected:
  void SetUp() override {
    if (std::endian::native == std::endian::big) GTEST_SKIP() << "the bytes are little-endian";
    PerfringTest::SetUp();
  }
  static std::string image(std::uint64_t head, const std::string& data) {
    std::string file(8192, '\0');
    file.replace(1024, 8, reinterpret_cast<const char*>(&head), 8);
    return file.replace(4096, data.size(), data);
  }
};

TEST_F(InspectCommandTest, ACaseOfTheVectorsIsExplained) {
  const std::string vectors = std::getenv("CASES");
  const ProcessResult ended = run({"inspect", vectors, "--case", "size-0"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("data_tail 0x0, data_head 0x60: 96 bytes unread"),
                               HasSubstr("0x0 (at 0) 32 bytes: SAMPLE"),
                               HasSubstr("header.size 0: not a multiple of 8"),
                               HasSubstr("data_tail moves to 0x60")));
  const ProcessResult second =
      run({"inspect", vectors, "--case", "turns", "--turn", "2", "--json"});
  const Json outcome = parsed(second.out);
  EXPECT_EQ(outcome["data_tail"], 32);
  EXPECT_EQ(outcome["records"].size(), 2U);
  EXPECT_EQ(outcome["records"][0]["delivers"], "sample");
}

TEST_F(InspectCommandTest, RawImageOrFuzzerInputIsExplained) {
  const std::string lost{"\2\0\0\0\0\0\x18\0\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0", 24};
  const ProcessResult raw = run({"inspect", temporary("image", image(24, lost))});
  EXPECT_EQ(raw.exit_code, 0) << raw.err;
  EXPECT_THAT(raw.out, HasSubstr("LOST misc 0x0 size 24: id 1, lost 7"));
  const std::string positions{"\0\0\0\0\0\0\0\0\0\x18\0\0\0\0\0\0\0", 17};
  const ProcessResult fuzz = run({"inspect", "--fuzz", temporary("fuzz", positions + lost)});
  EXPECT_EQ(fuzz.exit_code, 0) << fuzz.err;
  EXPECT_THAT(fuzz.out, HasSubstr("LOST misc 0x0 size 24: id 1, lost 7"));
}

// Two samples of one event: the first has TIME 7 and 4 bytes of raw data, the second has a raw size
// that does not fit into the record.
TEST_F(InspectCommandTest, SampleTypeSelectsHowSamplesAreDecoded) {
  const std::string good{"\x09\0\0\0\0\0\x18\0\7\0\0\0\0\0\0\0\4\0\0\0abcd", 24};
  std::string bad = good;
  bad[16] = 5;
  const std::string file = temporary("image", image(48, good + bad));
  const ProcessResult result = run({"inspect", file, "--sample-type", "TIME|RAW"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("size 24: time 7, raw {size 4, data 61626364}"),
                                HasSubstr("the sample has no room for raw"),
                                Not(HasSubstr("assumed to have only RAW"))));
  EXPECT_THAT(
      run({"inspect", file}).out,
      HasSubstr("samples are assumed to have only RAW: the ring does not contain their type"));
  const ProcessResult refused = run({"inspect", file, "--sample-type", "COLOUR"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--sample-type: "));
  const std::string vectors = std::getenv("CASES");
  EXPECT_THAT(run({"inspect", vectors, "--case", "sample-time"}).out,
              AllOf(HasSubstr("time "), Not(HasSubstr("assumed to have only RAW"))));
}

TEST_F(InspectCommandTest, ARingIsDrawn) {
  const ProcessResult ended =
      run({"inspect", std::getenv("CASES"), "--case", "straddle-8", "--svg", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("<svg "), HasSubstr("data_tail 0xff8"),
                               HasSubstr("0xff8: 64 bytes, sample"), HasSubstr("</svg>")));
}

TEST_F(InspectCommandTest, AFileThatHoldsNoRingIsRefused) {
  const std::string vectors = std::getenv("CASES");
  std::string fields = R"({"cases": [])";
  for (int i = 0; i < 1000; ++i) fields += ", \"" + std::to_string(i) + "\": 0";
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"/nonexistent"}, "'/nonexistent' cannot be read"},
      {{temporary("short", "abc")}, "it is not a ring image"},
      {{vectors, "--case", "nothing"}, "it has no case 'nothing'"},
      {{vectors, "--case", "turns", "--turn", "3"}, "the case has turns 1 to 2"},
      {{temporary("text", "{}"), "--case", "turns"}, "it is not an index of vectors"},
      {{temporary("fields", fields + "}"), "--case", "turns"}, "more than 1000 fields"},
      {{vectors, "--turn", "2"}, "--turn requires --case"},
  };
  for (const auto& [arguments, why] : refused) {
    std::vector<std::string> all{"inspect"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProcessResult ended = run(all);
    EXPECT_EQ(ended.exit_code, 2) << why;
    EXPECT_THAT(ended.err, HasSubstr(why));
  }
}

}  // namespace
}  // namespace perfring::cli
