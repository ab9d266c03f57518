// Decodes files of records with perfring and with perf, and compares the two field by field.

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/cli/record/perf_words.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/record/perf_data.h"
#include "harness/record/vectors.h"

namespace perfring::cli {
namespace {

using Counts = std::map<std::string, std::size_t>;

class PerfReadsTest : public PerfringTest {
 protected:
  void SetUp() override {
    if (const std::string why = why_not_recorded(); !why.empty()) GTEST_SKIP() << why;
    PerfringTest::SetUp();
    if (shell("command -v perf").exit_code != 0) GTEST_SKIP() << "it needs perf (ci/setup)";
  }
  // Returns a prefix that mounts tracefs, which has the tracepoints' ids, for one command only.
  std::vector<std::string> with_tracefs() {
    return {"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
            "mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; exec \"$0\" \"$@\""};
  }
  ProcessResult shell_with_tracefs(const std::string& line) {
    auto words = with_tracefs();
    words.insert(words.end(), {"/bin/sh", "-c", line});
    return run_child(words);
  }
  void compare_with_perf(const std::string& file, unsigned period, Counts& counts,
                         const std::string& by = "script", std::size_t begin = 0);
};

bool is_of_linux(int major, int minor) {
  utsname name{};
  int version[2] = {};
  return ::uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &version[0], &version[1]) == 2 &&
         std::pair{version[0], version[1]} >= std::pair{major, minor};
}

// Checks that perfring and perf decode every record of `file` in the same way. Counts the records
// of each type, and the records with a callchain or raw bytes.
void PerfReadsTest::compare_with_perf(const std::string& file, unsigned period, Counts& counts,
                                      const std::string& by, std::size_t begin) {
  const ProcessResult decoded = run({"decode", "--json", file});
  ASSERT_EQ(decoded.exit_code, 0) << decoded.err;
  const ProcessResult printed = shell("perf " + by + " -D -i " + file);
  auto by_perf = read_by_perf(printed.out);
  std::vector<Json> records;
  for (const std::string& line : lines_of(decoded.out)) records.push_back(parsed(line));
  const std::set<Number> ids = ids_of(printed.out);
  if (std::ranges::any_of(records, [&](const Json& each) { return has_foreign_id(each, ids); })) {
    GTEST_SKIP() << "a sample has the id of an event that another program has opened meanwhile "
                    "(R25), and perf 6.1 reads no further: 'failed to process type: 9'";
  }
  if (std::ranges::any_of(records, is_too_long)) {
    GTEST_SKIP() << "another program asks for KSYMBOL, BPF_EVENT or TEXT_POKE meanwhile, and the "
                    "kernel makes them too long (R28): perf 6.1 reads wrong sample_ids out of them";
  }
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  for (Json& record : records) {
    record["at"] = record["at"].get<std::size_t>() - begin;
    const std::string at = alternate(number(record["at"]));
    ASSERT_TRUE(by_perf.contains(at)) << record << "\n" << printed.out.substr(0, 2000);
    std::string perfs = by_perf[at];
    by_perf.erase(at);
    if (record["header"]["type"] >= 64) {  // perf's own
      const std::string name = record["record"];
      const std::size_t after = name.starts_with("HEADER_") ? 7 : 0;  // perf omits HEADER_ here
      ASSERT_NE(perfs.find(": PERF_RECORD_" + name.substr(after)), std::string::npos) << perfs;
      ++counts["perf's own"];
      continue;
    }
    ASSERT_EQ(in_perf_words(record, period), perfs);
    ++counts[record["record"]];
    counts["callchain"] += record.contains("callchain");
    counts["raw"] += record.contains("raw");
    if (record.contains("build_id")) ++counts["build_id"];
  }
  EXPECT_TRUE(by_perf.empty()) << by_perf.begin()->second;
  EXPECT_EQ(shell("perf report --stdio -i " + file + " 2>&1").exit_code, 0);
}

TEST_F(PerfReadsTest, PerfReadsTheSameFieldsOutOfItsFile) {
  const std::string file = temporary("record_command_test.data");
  const std::string script =
      "for i in 1 2 3 4 5 6 7 8 9 10; do true | cat; done; sleep 0.01; unshare -n true; " +
      command({}).front() + " --seconds 0.01";
  ProcessResult ended{};
  // On a busy machine the rings overflow.
  for (int tries = 0; tries < 10 && ended.err.find(" 0 lost") == std::string::npos; ++tries) {
    ended = run(
        {"record", "-g", "-e", "page-faults", "-e", "sched:sched_switch", "-e",
         "changes:switches,namespaces,symbols,programs", "-o", file, "--", "/bin/sh", "-c", script},
        with_tracefs());
  }
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  Counts counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts));
  if (IsSkipped()) return;
  EXPECT_GT(counts["SAMPLE"], 1000U);
  for (const char* const type : {"COMM", "FORK", "EXIT", "SWITCH", "MMAP2"}) {
    EXPECT_GT(counts[type], 5U) << type << ended.err;
  }
  for (const char* const type : {"KSYMBOL", "BPF_EVENT", "NAMESPACES"}) {
    EXPECT_GT(counts[type], 0U) << type << ended.err;
  }
  EXPECT_GT(counts["callchain"], 100U);
  // perf prints the names of the tracepoint and of its fields.
  const ProcessResult traced =
      shell("perf script -F event,trace -i " + file +
            " 2>/dev/null | grep -c 'sched:sched_switch:.* prev_pid=.* ==> '");
  EXPECT_GT(counts["raw"], 20U);
  EXPECT_EQ(traced.out, std::to_string(counts["raw"]) + "\n");
}

// R25: another program opens the same event later and samples it at the same time. If the samples
// can only come from one event, the file has all of them.
TEST_F(PerfReadsTest, ReadsSamplesWithIdsOfAnotherProgram) {
  const std::string file = temporary("perf_reads_test_ids.data");
  const std::string others = temporary("perf_reads_test_others.data");
  std::filesystem::remove(others);
  for (const bool is_one : {true, false}) {
    std::filesystem::remove(file);
    std::filesystem::remove(others);
    // The other program starts when the first file exists, and both end after some switches. Not
    // page-faults: a compiler on the same machine has 100 000 of them each second.
    const ProcessResult ended =
        shell(std::string{"$PERFRING record -a -e context-switches "} +
              (is_one ? "" : "-e cpu-migrations ") + "--seconds 20 -o " + file +
              " & own=$!; until [ -s " + file + " ]; do sleep 0.01; done; " +
              "$PERFRING record -a -e context-switches --seconds 20 -o " + others +
              " 2>/dev/null & other=$!; until [ -s " + others + " ]; do sleep 0.01; done; " +
              "for i in 1 2 3 4 5 6 7 8 9 10; do true | cat; done; "
              "switches() { sed -n 's/^ctxt //p' /proc/stat; }; enough=$(($(switches) + " +
              (is_one ? "1000" : "200") +
              ")); "
              "until [ \"$(switches)\" -gt $enough ]; do true | cat; done; "
              "kill $own; wait $own; kill $other; wait");
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    Counts counts;
    ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts));
    EXPECT_GT(counts["SAMPLE"], is_one ? 500U : 0U);
    EXPECT_GT(counts["EXIT"], 20U) << "perf stopped reading";
    EXPECT_EQ(shell("perf script -F event -i " + file + " 2>/dev/null | wc -l").out,
              std::to_string(counts["SAMPLE"]) + "\n");
    EXPECT_EQ(ended.err.find("left out of the file") == std::string::npos,
              is_one || !is_of_linux(6, 3))
        << ended.err;
  }
}

// R28: if two programs request KSYMBOL and BPF_EVENT, the kernel makes the records of one too long.
TEST_F(PerfReadsTest, OverlongKernelRecordsAreCorrected) {
  const std::string file = temporary("perf_reads_test_long.data");
  const std::string others = temporary("perf_reads_test_long_others.data");
  std::filesystem::remove(file);
  std::filesystem::remove(others);
  const std::string record = "$PERFRING record -a -e changes:symbols,programs --seconds 20 -o ";
  const ProcessResult ended =
      shell(record + file + " & own=$!; until [ -s " + file + " ]; do sleep 0.01; done; " + record +
            others + " & other=$!; until [ -s " + others + " ]; do sleep 0.01; done; " +
            "$PERFRING --seconds 0.1 >/dev/null; kill $own $other; wait");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  for (const std::string& each : {file, others}) {
    Counts counts;
    ASSERT_NO_FATAL_FAILURE(compare_with_perf(each, 1, counts));
    ASSERT_FALSE(IsSkipped()) << "the file has them as the kernel made them";
    EXPECT_GT(counts["BPF_EVENT"], 2U) << ended.err;
  }
}

// Without records of existing tasks, perf shows a number for the program, and [unknown] for its
// code and the kernel's.
TEST_F(PerfReadsTest, PerfKnowsWhatExistedBeforeRecording) {
  struct Program {
    const char* command;
    const char* name;
    const char* code;  // where the program spends its time
    const char* recorded;
  };
  const std::string file = temporary("record_command_test_before.data");
  for (const auto& [command_line, name, code, recorded] :
       {Program{"while :; do :; done", "sh", "(/usr/", "-p $pid"},
        Program{"exec dd if=/dev/zero of=/dev/null bs=64k", "dd", "([kernel.kallsyms])", "-a"},
        Program{"exec sleep 9", "dd", "([kernel.kallsyms])",
                "-- timeout 1 dd if=/dev/zero of=/dev/null bs=64k"}}) {
    const ProcessResult ended = shell(
        "sh -c '" + std::string{command_line} + "' & pid=$!; sleep 0.1; " + command({}).front() +
        " record -e cpu-clock --seconds 1 -o " + file + " " + recorded + "; kill $pid");
    Counts counts;
    ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 10101010, counts)) << ended.err;
    if (IsSkipped()) return;
    for (const char* const type : {"SAMPLE", "COMM", "FORK", "MMAP", "MMAP2"}) {
      EXPECT_GT(counts[type], 0U) << name << " " << type << " " << ended.err;
    }
    const ProcessResult named = shell("perf script -F comm,ip,dso -i " + file +
                                      " 2>&1 | grep '^ *" + std::string{name} + " '");
    EXPECT_NE(named.out.find(code), std::string::npos) << named.out;
    EXPECT_EQ(named.out.find("[unknown]"), std::string::npos) << named.out;
  }
}

// With build ids only the last event, a dummy, has attr.build_id; perf's own records have id 0.
TEST_F(PerfReadsTest, AFileOfPerfRecordIsDecodedAsPerfDoes) {
  const std::string file = temporary("record_command_test_perf.data");
  Counts counts;
  for (const char* const option : {"", "--buildid-mmap"}) {
    const ProcessResult ended = shell(
        "perf record -q -a -g -c 20 -e page-faults -e context-switches " + std::string{option} +
        " -o " + file + " -- sh -c 'for i in 1 2 3 4 5; do true | cat; done' 2>&1");
    ASSERT_EQ(ended.exit_code, 0) << ended.out;
    ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 20, counts));
    if (IsSkipped()) return;
  }
  EXPECT_GT(counts["build_id"], 0U);
  EXPECT_GT(counts["callchain"], 10U);
  for (const char* const type : {"COMM", "FORK", "EXIT", "MMAP", "MMAP2", "perf's own"}) {
    EXPECT_GT(counts[type], 0U) << type;
  }
}

// While perfring is stopped, nobody reads, and the rings overflow. Each ring's next record after
// the drain reports its losses. When the file has grown by more than the size of all rings (64
// pages each), all rings have been drained; then the script causes a fault on each CPU.
TEST_F(PerfReadsTest, PerfReadsTheLostRecordsOfAStoppedRecorder) {
  const std::string file = temporary("perf_reads_test_lost.data");
  const ProcessResult ended =
      run({"record", "-g", "-e", "page-faults", "-o", file, "--", "/bin/sh", "-c",
           R"(faults() {
                                for cpu in $(seq 0 $(($(nproc --all) - 1))); do
                                  taskset -c $cpu true 2>&-
                                done
                              }
                              kill -STOP $PPID
                              for i in $(seq 50); do true | cat; done
                              all=$(($(stat -c %s "$0") + 64 * $(getconf PAGE_SIZE) * $(nproc --all)))
                              kill -CONT $PPID
                              while [ $(stat -c %s "$0") -le $all ]; do faults; done
                              faults)",
           file});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  Counts counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts));
  if (IsSkipped()) return;
  EXPECT_GT(counts["LOST"], 0U) << ended.err;
}

// In a recording of all CPUs, a SWITCH names the other task; for CGROUP see R10.
TEST_F(PerfReadsTest, PerfReadsChangesOnAllCpus) {
  const std::string file = temporary("perf_reads_test_cpus.data");
  const std::string folder = shell("grep -m1 ' cgroup2 ' /proc/mounts | cut -d' ' -f2").out;
  const std::string group =
      folder.substr(0, folder.find('\n')) + "/perf_reads_test_" + std::to_string(::getpid());
  const ProcessResult ended =
      shell("$PERFRING record -a -e changes:switches,cgroups --seconds 0.3 -o " + file +
            " & pid=$!; while kill -0 $pid 2>/dev/null; do mkdir " + group + "; rmdir " + group +
            "; sleep 0.05; done; wait $pid");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  Counts counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts));
  if (IsSkipped()) return;
  EXPECT_GT(counts["SWITCH_CPU_WIDE"], 10U);
  if (!folder.empty()) {
    EXPECT_GT(counts["CGROUP"], 0U) << ended.err;
  }
}

// perf itself counts lost samples, and writes them at the end of its file.
TEST_F(PerfReadsTest, LostSamplesOfPerfRecordAreDecodedAsPerfDoes) {
  const std::string file = temporary("perf_reads_test_samples.data");
  const ProcessResult ended = shell(
      "perf record -q -m 1 -c 1 -e page-faults -o " + file +
      " -- sh -c 'kill -STOP $PPID; i=0; while [ $i -lt 100 ]; do true | cat; i=$((i+1)); done; "
      "kill -CONT $PPID; sleep 0.2' 2>&1");
  ASSERT_EQ(ended.exit_code, 0) << ended.out;
  Counts counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts));
  if (IsSkipped()) return;
  EXPECT_GT(counts["LOST"], 0U);
  EXPECT_GT(counts["LOST_SAMPLES"], 0U);
}

// Genuine records from vectors.jsonl, of types that this machine hardly ever writes (THROTTLE,
// READ) or that only other kernels write (TEXT_POKE). perf 6.1 reads a READ only if read_format is
// 0.
TEST_F(PerfReadsTest, PerfReadsTheGenuineRecordsOfRareTypes) {
  if (std::endian::native == std::endian::big) GTEST_SKIP() << "they are in little endian";
  const auto vectors = record::parse_vectors(contents(environment_variable("VECTORS")));
  ASSERT_TRUE(vectors) << vectors.error();
  Counts counts;
  for (const record::Vector& vector : *vectors) {
    const std::string type = vector.stated.value("record", "");
    const bool is_one = type == "THROTTLE" || type == "UNTHROTTLE" || type == "TEXT_POKE" ||
                        type == "LOST" || type == "NAMESPACES" || type == "CGROUP" ||
                        (type == "READ" && vector.attr.read_format == 0);
    if (!is_one || vector.is_read) continue;
    record::PerfDataEvent event{vector.attr, {1}};
    event.attr.size = sizeof event.attr;
    const std::string file = temporary(
        "perf_reads_test_" + vector.name,
        record::perf_data_header(std::array{event}, vector.bytes.size()) +
            std::string{reinterpret_cast<const char*>(vector.bytes.data()), vector.bytes.size()});
    ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 0, counts, "report")) << vector.name;
  }
  const Counts expected{{"CGROUP", 1},     {"LOST", 1},      {"NAMESPACES", 2},
                        {"READ", 1},       {"TEXT_POKE", 3}, {"THROTTLE", 1},
                        {"UNTHROTTLE", 2}, {"callchain", 0}, {"raw", 0}};
  EXPECT_EQ(counts, expected);
}

// `perf record -o -`. perf's offsets begin after the header of the pipe format.
TEST_F(PerfReadsTest, APipeOfPerfRecordIsDecodedAsPerfDoes) {
  const std::string file = temporary("perf_reads_test_pipe.data");
  const ProcessResult ended = shell_with_tracefs(
      "perf record -q -a -g -e page-faults -e sched:sched_switch -o - -- "
      "sh -c 'for i in 1 2 3; do true | cat; done' >" +
      file);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  Counts counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts, "script", 16));
  if (IsSkipped()) return;
  for (const char* const type : {"SAMPLE", "COMM", "MMAP2", "raw", "perf's own"}) {
    EXPECT_GT(counts[type], 0U) << type;
  }
  const ProcessResult piped = shell("cat " + file + " | $PERFRING decode - | wc -l");
  EXPECT_EQ(piped.out, std::to_string(lines_of(run({"decode", file}).out).size()) + "\n");
}

TEST_F(PerfReadsTest, PerfReadsThePipeThatRecordWrites) {
  const std::string file = temporary("perf_reads_test_own_pipe.data");
  const ProcessResult ended =
      shell_with_tracefs(command({}).front() +
                         " record -e page-faults -e sched:sched_switch -o - -- "
                         "sh -c 'for i in 1 2 3; do true | cat; done' | cat >" +
                         file);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  Counts counts;
  ASSERT_NO_FATAL_FAILURE(compare_with_perf(file, 1, counts, "script", 16));
  if (IsSkipped()) return;
  for (const char* const type : {"SAMPLE", "COMM", "MMAP2", "FORK", "raw", "perf's own"}) {
    EXPECT_GT(counts[type], 0U) << type;
  }
  // perf uses the tracepoint's format from the file.
  const ProcessResult read = shell("perf script -i - <" + file);
  EXPECT_NE(read.out.find("sched:sched_switch: prev_comm="), std::string::npos) << read.err;
}

TEST_F(PerfReadsTest, ACompressedFileIsRefusedWithAdvice) {
  const std::string file = temporary("perf_reads_test_z.data");
  const ProcessResult ended =
      shell("perf record -q -z -e page-faults -o " + file + " -- true 2>&1");
  if (ended.exit_code != 0) GTEST_SKIP() << "perf does not compress: " << ended.out;
  const ProcessResult decoded = run({"decode", file});
  EXPECT_EQ(decoded.exit_code, 2);
  EXPECT_NE(decoded.err.find("record without -z"), std::string::npos) << decoded.err;
}

}  // namespace
}  // namespace perfring::cli
