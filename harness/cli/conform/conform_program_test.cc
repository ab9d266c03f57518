// Runs `perfring conform -- PROGRAM` with unmodified consumers: perfring, libbpf and other tools.
// Programs that misbehave are in conform_misbehaviour_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/privileges.h"
#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConformProgramTest : public SupervisedTest {
 protected:
  Json outcome_of_perfring(const std::string& program) {
    const ProcessResult ended =
        run({"conform", "--json", "--", program, "{pages}", "{wakeup_watermark}", "{wakeup_events}",
             "{sample_type}", "{sample_id_all}"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
    return parsed(ended.out);
  }

  // Compiles misbehaving.c for i386 into i386_. Returns the reason if it cannot, otherwise "".
  std::string make_i386() {
    if (!is_installed("i686-linux-gnu-gcc")) {
      return "gcc-i686-linux-gnu is not installed: ci/setup cross";
    }
    i386_ = compiled("i686-linux-gnu-gcc -static -o", file_of("ADAPTERS", "misbehaving.c"));
    // The shell prints the reason if a 64-bit kernel does not run i386 programs.
    const ProcessResult ended = run_child({"/bin/sh", "-c", i386_});
    return ended.err.starts_with("usage: ") ? ""
                                            : "this kernel runs no i386 programs: " + ended.err;
  }

  std::string i386_;
};

// In all cases except the cases of a 32-bit kernel.
TEST_F(ConformProgramTest, PerfringIsRight) {
  const Json outcome = outcome_of_perfring(subject("PERFRING_SUBJECT"));
  EXPECT_GE(outcome["counts"]["right"], 118) << outcome["counts"];
  for (const Json& row : outcome["cases"]) {
    const bool narrow = row["id"].get<std::string>().starts_with("w32-");
    EXPECT_EQ(row["outcome"], narrow ? "not run" : "right") << row;
  }
}

// The known failures were observed in libbpf 1.1.2 by other means, too (P14, P20, P22).
TEST_F(ConformProgramTest, LibbpfHasTheOutcomesThatAreKnownOfIt) {
  const ProcessResult ended =
      run({"conform", "--known",
           temporary("known",
                     "oversize-65525 garbage\noversize-65540 garbage\n"
                     "oversize-near-the-end out of bounds\nwhile-registering loses\n"
                     "raw-1mib out of bounds\nsize-0 floods\n"),
           "--only", "three-sizes", "straddle-8", "lost-one", "oversize-65525", "oversize-65540",
           "oversize-near-the-end", "while-registering", "raw-1mib", "size-0", "--",
           subject("LIBBPF_SUBJECT"), "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("3 right"), HasSubstr("2 out of bounds"),
                               HasSubstr("signal 11 at byte 8192 of the ring's 8192")));
}

// Returns the rows of RESULTS.md by their first column.
std::map<std::string, std::vector<std::string>> rows_of_results() {
  std::map<std::string, std::vector<std::string>> rows;
  std::ifstream file{environment_variable("RESULTS")};
  for (std::string line; std::getline(file, line) && !line.starts_with("## On the live");) {
    std::vector<std::string> words;
    std::istringstream cells{line};
    for (std::string cell; line.starts_with("| ") && std::getline(cells, cell, '|');) {
      const std::size_t begin = std::min(cell.find_first_not_of(' '), cell.size());
      words.push_back(cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
    }
    if (words.size() > 2) rows.try_emplace(words[1], words.begin() + 2, words.end());
  }
  return rows;
}

// Each part has a quarter of the cases, because every hanging case takes a timeout.
class ConformMatrixTest : public ConformProgramTest,
                          public ::testing::WithParamInterface<std::size_t> {
 public:
  static constexpr std::size_t kParts = 4;

 protected:
  std::vector<std::string> cases_of_this_part() {
    std::vector<std::string> ids;
    std::istringstream list{run({"conform", "--list"}).out};
    std::size_t at = 0;
    for (std::string line; std::getline(list, line); ++at) {
      if (at % kParts == GetParam() && line.find("(long: ") == std::string::npos)
        ids.push_back(line.substr(0, line.find(' ')));
    }
    return ids;
  }
};
INSTANTIATE_TEST_SUITE_P(Parts, ConformMatrixTest,
                         ::testing::Range(std::size_t{0}, ConformMatrixTest::kParts));

// The job `ci/run conform` checks the other columns.
TEST_P(ConformMatrixTest, LibbpfHasTheOutcomesOfTheMatrix) {
  auto rows = rows_of_results();
  const auto column = static_cast<std::size_t>(
      std::ranges::find(rows[""], std::string_view{"libbpf"}) - rows[""].begin());
  ASSERT_LT(column, rows[""].size());
  const std::string version =
      run_child({"/usr/bin/dpkg-query", "-W", "-f=${Version}", "libbpf1"}).out;
  if (version != rows["version"].at(column)) {
    GTEST_SKIP() << "RESULTS.md is of libbpf " << rows["version"][column] << ", here is "
                 << version;
  }
  const auto ids = cases_of_this_part();
  ASSERT_GE(ids.size(), 30U);
  std::vector<std::string> words{"conform", "--json", "--only"};
  std::ranges::copy(ids, std::back_inserter(words));
  std::ranges::copy(std::vector<std::string>{"--", subject("LIBBPF_SUBJECT"), "{pages}"},
                    std::back_inserter(words));
  const ProcessResult ended = run(words);
  const Json outcome = parsed(ended.out);
  ASSERT_EQ(outcome["cases"].size(), ids.size()) << ended.err;
  for (const Json& row : outcome["cases"]) {
    std::string cell;
    for (const Json& each : row.value("accepted", Json::array())) {
      cell += (cell.empty() ? "" : ", ") + each.get<std::string>();
    }
    const std::string stated = row["outcome"];
    EXPECT_EQ(rows[row["id"]].at(column), stated == "acceptable" ? "(" + cell + ")" : stated)
        << row;
  }
}

// These tools print more than the case's payload for each record: words, or fields, as in
// RESULTS.md.
TEST_F(ConformProgramTest, PerfTraceIsRunWithItsEventsEnteredForIt) {
  if (!is_installed("perf")) GTEST_SKIP() << "linux-perf is not installed: ci/setup";
  if (!os::online_cpus()) GTEST_SKIP() << "sysfs, which lists the online CPUs, is not mounted";
  const ProcessResult ended =
      run({"conform", "--only", "one-record,straddle-24,lost-one,cpus-2,oversize-65540,size-4",
           "--reader", "perf-trace", "--", "/bin/sh", "-c",
           "exec perf trace --no-syscalls -a -m {pages} -e "
           "bpf-output/no-inherit=1,name=evt/ 2>&1"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("6 cases: 5 right, 1 loses"),
                               HasSubstr("size-4          hostile    loses")))
      << ended.err;
}

TEST_F(ConformProgramTest, BpftraceReadsSimulatedRing) {
  if (!is_installed("bpftrace")) GTEST_SKIP() << "bpftrace is not installed: ci/setup conform";
  if (!is_root()) GTEST_SKIP() << "bpftrace wants root";
  const ProcessResult ended = run(
      {"conform", "--only", "one-record,straddle-24,lost-one,turns,while-registering", "--reader",
       "bpftrace", "--", "/usr/bin/env", "BPFTRACE_PERF_RB_PAGES={pages}", "bpftrace", "-e",
       R"(BEGIN { if (pid == 0) { printf("seq %llu sum %llx\n", nsecs, nsecs); } })"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("5 cases: 3 right, 1 not run, 1 loses"),
                               HasSubstr("not run: its reader needs 16 bytes")))
      << ended.err;
}

// As in the row w32-uniform of RESULTS.md, but with 4 GiB that are really written and read (P12).
TEST_F(ConformProgramTest, AnI386ProgramReads4GiB) {
  if (environment_variable("PERFRING_LONG").empty()) {
    GTEST_SKIP() << "a minute: bazel test //harness/cli:conform_long_test";
  }
  if (const std::string why = make_i386(); !why.empty()) GTEST_SKIP() << why;
  const ProcessResult ended = run({"conform", "--only", "w32-through-4gib", "--reader", "lines-24",
                                   "--", i386_, "well-24", "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const ProcessResult wrong = run({"conform", "--only", "w32-through-4gib", "--reader", "lines-24",
                                   "--", i386_, "compares-24", "{pages}"});
  EXPECT_EQ(wrong.exit_code, 1) << wrong.err << wrong.out;
}

TEST_F(ConformProgramTest, PerfringIsRightIn32BitsToo) {
  if (const std::string why = make_i386(); !why.empty()) GTEST_SKIP() << why;
  if (!is_installed("i686-linux-gnu-g++")) {
    GTEST_SKIP() << "g++-i686-linux-gnu is not installed: ci/setup cross";
  }
  const std::string program = compiled(
      "i686-linux-gnu-g++ -std=c++23 -O1 -static -Ilib "
      "$(ls lib/perfring/*.cc lib/perfring/os/*.cc | grep -v _test) -o",
      file_of("ADAPTERS", "perfring.cc"));
  const Json outcome = outcome_of_perfring(program);
  EXPECT_GE(outcome["counts"]["right"], 133);
  EXPECT_EQ(outcome["counts"].size(), 1U) << outcome["counts"];
}

// The cases w32-* run on a simulated 32-bit kernel.
TEST_F(ConformProgramTest, AnI386ProgramIsRightOn32BitKernelsToo) {
  if (const std::string why = make_i386(); !why.empty()) GTEST_SKIP() << why;
  const ProcessResult ended = run({"conform", "--json", "--only", "w32-*", "straddle-*",
                                   "three-sizes", "lost-one", "--", i386_, "well", "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_EQ(parsed(ended.out)["counts"], Json({{"right", 15}})) << ended.out;
  for (const std::string how : {"selects", "masks", "masks-in-pselect"}) {
    const ProcessResult waits =
        run({"conform", "--only", "drained-twice", "--", i386_, how, "{pages}"});
    EXPECT_EQ(waits.exit_code, 0) << how << waits.out;
  }
}

// A traced program gets no privilege from its set-uid bit, but it runs.
TEST_F(ConformProgramTest, ASetUidSubjectRuns) {
  const std::string copy = temporary("set_uid_subject");
  std::filesystem::copy_file(subject("PERFRING_SUBJECT"), copy);
  std::filesystem::permissions(copy, std::filesystem::perms{04755});
  const ProcessResult ended = run({"conform", "--only", "one-record", "--", copy, "{pages}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  const ProcessResult failed = run({"conform", "--only", "one-record", "--", copy, "3"});
  EXPECT_THAT(failed.out, HasSubstr("; a traced program gets no privilege from its set-uid bit"));
}

}  // namespace
}  // namespace perfring::cli
