// Runs `perfring decode` and `perfring inspect` as processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
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

// A LOST record: event 5 lost 7 records.
constexpr const char* kLost =
    R"({"name": "lost", "record": "LOST", "type": 2, "attr": {"sample_type": "0x0", "flags": "0x0"},)"
    R"( "known": {"id": 5, "lost": "0x7"}, "bytes": "020000000000180005000000000000000700000000000000"})";

std::string with(std::string text, const std::string& what, const std::string& instead) {
  const std::size_t at = text.find(what);
  return at == std::string::npos ? "" : text.replace(at, what.size(), instead);
}

class DecodeCommandTest : public PerfringTest {
 protected:
  void SetUp() override {
    if (std::endian::native == std::endian::big) GTEST_SKIP() << "records here are little endian";
    PerfringTest::SetUp();
  }
  // Decodes a file with this text.
  ProcessResult decode(const std::string& text, std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"decode", temporary("decode_command_test", text)});
    return run(arguments);
  }
  static std::string vectors() { return std::getenv("VECTORS"); }
};

TEST_F(DecodeCommandTest, TheGenuineRecordsAreAsKnown) {
  const ProcessResult ended = run({"decode", vectors(), "--check"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("122 records, 964 values compared"), std::string::npos) << ended.out;
}

TEST_F(DecodeCommandTest, JsonIsAnObjectALineByTheUapisNames) {
  const ProcessResult ended = run({"decode", "--json", vectors()});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  std::istringstream lines{ended.out};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json record = parsed(line);
    if (record["name"] != "mmap2_sid") continue;
    EXPECT_EQ(record["record"], "MMAP2");
    EXPECT_EQ(record["header"]["size"], 160);
    EXPECT_EQ(record["maj"], 254);
    EXPECT_EQ(record["addr"], "0x7f502a72b000");
    EXPECT_EQ(record["sample_id"]["identifier"], 4280);
  }
  EXPECT_EQ(count, 122U);
}

TEST_F(DecodeCommandTest, TextIsARecordALine) {
  const ProcessResult ended = decode(kLost);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "lost: LOST misc 0x0 size 24: id 5, lost 7\n");
}

TEST_F(DecodeCommandTest, StdinIsReadForADash) {
  const ProcessResult ended =
      shell("printf '%s' '" + std::string{kLost} + "' | $PERFRING decode -");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "lost: LOST misc 0x0 size 24: id 5, lost 7\n");
}

TEST_F(DecodeCommandTest, CheckExits1IfValueDiffers) {
  const std::string wrong = with(kLost, "\"0x7\"", "8");
  const ProcessResult ended = decode(wrong, {"--check"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.out.find("lost: lost is known to be 8, decoded as 7\n"), std::string::npos)
      << ended.out;
  const ProcessResult as_json = decode(wrong, {"--check", "--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  const Json outcome = parsed(as_json.out);
  EXPECT_EQ(outcome["verdict"], "violated");
  EXPECT_EQ(outcome["differences"][0]["name"], "lost");
  EXPECT_EQ(outcome["differences"][0]["field"], "lost");
}

TEST_F(DecodeCommandTest, CheckFailsIfTheLinesTypeIsNotTheHeaders) {
  EXPECT_EQ(decode(with(kLost, "\"type\": 2", "\"type\": 3"), {"--check"}).exit_code, 1);
  EXPECT_EQ(decode(with(kLost, "\"LOST\"", "\"MMAP\""), {"--check"}).exit_code, 1);
  EXPECT_EQ(decode(kLost, {"--check"}).exit_code, 0);
}

TEST_F(DecodeCommandTest, MalformedRecordCountsAsDifference) {
  const std::string cut = with(kLost, "1800", "1000");
  const ProcessResult ended = decode(cut, {"--json"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(parsed(ended.out)["malformed"], "lost");
  EXPECT_EQ(decode(cut, {"--check"}).exit_code, 1);
}

TEST_F(DecodeCommandTest, FieldMissingFromRecordIsNotCompared) {
  const ProcessResult ended = decode(with(kLost, "\"id\": 5", "\"colour\": 5"), {"--check"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_NE(ended.out.find("colour is known, but not in the record"), std::string::npos);
}

TEST_F(DecodeCommandTest, CheckExits3IfTheLineNamesNoKnownField) {
  const std::string nothing = R"({"name": "n", "attr": {}, "bytes": "0e00000000000800"})";
  EXPECT_EQ(decode(nothing, {"--check"}).exit_code, 3);
}

// A comparison of the line's type does not count: it is not a known field.
TEST_F(DecodeCommandTest, CheckExits3IfNoKnownFieldIsInTheRecords) {
  const std::string absent = with(kLost, R"({"id": 5, "lost": "0x7"})", R"({"colour": 5})");
  const ProcessResult ended = decode(absent, {"--check"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("no known field of the records could be compared"));
  EXPECT_EQ(parsed(decode(absent, {"--check", "--json"}).out)["verdict"], "not shown");
}

TEST_F(DecodeCommandTest, UnreadableLineDoesNotStopDecoding) {
  const std::string text = std::string{kLost} + "\nnonsense\n" + kLost + "\n{}\n";
  const ProcessResult ended = decode(text);
  EXPECT_EQ(ended.exit_code, 2);
  const std::string line = "lost: LOST misc 0x0 size 24: id 5, lost 7\n";
  EXPECT_EQ(ended.out, line + line);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("line 2: it is not JSON\n"),
                               HasSubstr("line 4: field 'name' is missing or empty\n")));
  const ProcessResult checked = decode(text, {"--check"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_THAT(checked.out, HasSubstr("2 records, 8 values compared"));
  EXPECT_THAT(checked.out, HasSubstr("2 lines could not be read"));
  EXPECT_EQ(parsed(decode(text, {"--check", "--json"}).out)["holds"], false);
  // A difference takes precedence over lines that could not be read.
  EXPECT_EQ(decode(with(text, "\"0x7\"", "8"), {"--check"}).exit_code, 1);
}

// A file's magic is a u64 in the byte order of the machine that wrote it (tools/perf/util/header.c:
// check_magic_endian() at v6.18). In the pipe format 8 bytes follow it.
TEST_F(DecodeCommandTest, ForeignByteOrderIsRefusedWithAdvice) {
  const std::string pipe{"2ELIFREP\0\0\0\0\0\0\0\x10", 16};
  const std::string file = std::string{"2ELIFREP\0\0\0\0\0\0\0\x68", 16} + std::string(200, '\0');
  for (const std::string& each : {pipe, file}) {
    const ProcessResult ended = decode(each);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.err, AllOf(HasSubstr("recorded on a machine with the other byte order"),
                                 HasSubstr("decode it on such a machine, or print it here")));
    EXPECT_EQ(ended.out, "");
  }
}

TEST_F(DecodeCommandTest, NamesCannotActOnATerminal) {
  const std::string escape = with(kLost, "\"name\": \"lost\"", R"("name": "a\u001b[2J\nb")");
  for (const std::vector<std::string>& mode :
       {std::vector<std::string>{}, {"--json"}, {"--check"}, {"--check", "--json"}}) {
    const ProcessResult ended = decode(escape, mode);
    EXPECT_EQ(ended.out.find('\x1b'), std::string::npos) << ended.out;
  }
  EXPECT_EQ(decode(escape).out.find('\n'), decode(escape).out.size() - 1);
}

TEST_F(DecodeCommandTest, AFileOfAnotherFormIsRefusedWithItsLine) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"nonsense", "line 1: it is not JSON"},
      {std::string{kLost} + "\n\n[1]", "line 3: it is not an object"},
      {R"({"bytes": ""})", "'name' is missing"},
      {R"({"name": "n"})", "'bytes' is missing"},
      {R"({"name": "n", "bytes": "00"})", "'attr' is missing"},
      {R"({"name": "n", "bytes": "0", "attr": {}})", "odd number"},
      {R"({"name": "n", "bytes": "0x", "attr": {}})", "is not two hexadecimal digits"},
      {R"({"name": "n", "bytes": "00", "attr": 1})", "'attr' is not an object"},
      {R"({"name": "n", "bytes": "00", "attr": {"sample_type": "x"}})", "'sample_type' is not a"},
      {R"({"name": "n", "bytes": "00", "attr": {}, "known": 1})", "'known' is not an object"},
      {R"({"name": "n", "bytes": "00", "attr_hex": "00"})", "fewer than 64 bytes"},
      {R"({"name": "n", "bytes": "00", "attr": {}, "arch": "s390x big endian"})", "byte order"},
      {" \n\n", "has no record"}};
  for (const auto& [text, why] : refused) {
    const ProcessResult ended = decode(text);
    EXPECT_EQ(ended.exit_code, 2) << text;
    EXPECT_NE(ended.err.find(why), std::string::npos) << text << "\n" << ended.err;
  }
}

TEST_F(DecodeCommandTest, AMissingOrUnreadableFileIsRefused) {
  EXPECT_EQ(run({"decode"}).exit_code, 2);
  const ProcessResult ended = run({"decode", "/nonexistent"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.err.find("FILE: '/nonexistent' cannot be read"), std::string::npos) << ended.err;
}

TEST_F(DecodeCommandTest, AnAttrOfBytesIsTakenWhereThereIsNoOther) {
  std::string attr(2 * 144, '0');
  attr.replace(2 * 24, 2, "04");  // sample_type TIME
  attr.replace(2 * 42, 2, "04");  // sample_id_all: bit 18 of flags
  const ProcessResult ended =
      decode(R"({"name": "n", "known": {"sid_time": 9}, "attr_hex": ")" + attr +
                 R"(", "bytes": "0e000000000010000900000000000000"})",
             {"--check"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
}

}  // namespace
}  // namespace perfring::cli
