// Runs `perfring record` and `perfring events` on the machine's own kernel, and `perfring decode`
// on the recorded files. perf_reads_test.cc compares them with perf's output.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/sanitizers.h"
#include "perfring/os/process.h"

namespace perfring::cli {
namespace {

bool is_over(std::chrono::steady_clock::time_point begin) {
  return std::chrono::steady_clock::now() - begin > std::chrono::seconds{60};
}

class RecordCommandTest : public PerfringTest {
 protected:
  void SetUp() override {
    if (const std::string why = why_not_recorded(); !why.empty()) GTEST_SKIP() << why;
    PerfringTest::SetUp();
  }
  // Runs the command until ready() is true, calls then() with its process, and waits until it ends
  // by itself.
  ProcessResult after(const std::vector<std::string>& command, const std::function<bool()>& ready,
                      const std::function<void(const ChildProcess&)>& then) {
    ChildProcess child{command};
    bool done = false;
    const auto begin = std::chrono::steady_clock::now();
    return child.wait([&] {
      if (!done && (done = ready())) then(child);
      return is_over(begin);
    });
  }
  static std::function<bool()> is_written(const std::string& file) {
    std::filesystem::remove(file);
    return [file] {
      std::error_code none;
      return std::filesystem::file_size(file, none) > 0 && !none;
    };
  }
  std::vector<std::string> as_nobody() {
    return {"/usr/bin/setpriv", "--reuid=65534",       "--regid=65534",
            "--clear-groups",   "--bounding-set=-all", "--inh-caps=-all"};
  }
};

TEST_F(RecordCommandTest, RecordsOfACommandAreALineEach) {
  const ProcessResult ended =
      run({"record", "-e", "page-faults", "-e", "changes:execs", "--", "true"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const auto lines = lines_of(ended.out);
  ASSERT_GT(lines.size(), 5U);
  EXPECT_NE(ended.out.find("the changes: COMM misc 0x2000"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("page-faults: SAMPLE"), std::string::npos);
  EXPECT_NE(ended.err.find(fmt::format("{} records, 0 lost, 0 late", lines.size())),
            std::string::npos)
      << ended.err;
}

TEST_F(RecordCommandTest, JsonIsAnObjectALine) {
  const ProcessResult ended = run({"record", "--json", "-g", "-e", "page-faults", "--", "true"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  for (const std::string& line : lines_of(ended.out)) {
    const Json record = parsed(line);
    EXPECT_EQ(record["event"], "the software event page-faults");
    if (record["record"] == "SAMPLE") {
      EXPECT_TRUE(record.contains("callchain")) << line;
    }
  }
}

// The command's output must not mix with JSON or bytes.
TEST_F(RecordCommandTest, CommandOutputNeverMixesWithJsonOrBytes) {
  const std::vector<std::string> echo{"--", "sh", "-c", "echo of the command; true"};
  const auto recorded = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"record", "-e", "page-faults"});
    options.insert(options.end(), echo.begin(), echo.end());
    return run(options);
  };
  const ProcessResult text = recorded({});
  EXPECT_NE(text.out.find("of the command\n"), std::string::npos) << text.out;
  EXPECT_EQ(text.err.find("of the command\n"), std::string::npos) << text.err;
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--json"}, {"-o", "-"}, {"-o", "/dev/stdout"}}) {
    const ProcessResult ended = recorded(options);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ(ended.out.find("of the command\n"), std::string::npos) << options.back();
    EXPECT_NE(ended.err.find("of the command\n"), std::string::npos) << options.back();
    EXPECT_GT(ended.out.size(), 1000U) << options.back();
  }
}

TEST_F(RecordCommandTest, APlainUserSeesHisOwnSwitches) {
  const ProcessResult ended =
      run({"record", "-e", "context-switches", "--", "sleep", "0.01"}, as_nobody());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("SWITCH"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("the changes instead"), std::string::npos) << ended.err;
}

TEST_F(RecordCommandTest, ARequestThatCannotBeRecordedIsExplained) {
  const auto expect_refused = [this](const std::vector<std::string>& arguments,
                                     const std::string& why, std::vector<std::string> before = {}) {
    const ProcessResult ended = run(arguments, std::move(before));
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_NE(ended.err.find(why), std::string::npos) << ended.err;
  };
  expect_refused({"record", "-e", "page-faults"}, "no target is given");
  expect_refused({"record", "-e", "page-fault", "--", "true"}, "page-faults");
  expect_refused({"record", "-a", "-p", "1", "-e", "page-faults"}, "excludes");
  expect_refused({"record", "-e", "page-faults", "--", "/nonexistent"}, "there is no such program");
  expect_refused({"record", "-e", "page-faults", "-p", "2147483647"},
                 "there is no process 2147483647");
  expect_refused({"record", "-e", "page-faults", "-a"}, "watch your own tasks", as_nobody());
  expect_refused({"record", "-e", "page-faults", "-o", "/nonexistent/x", "--", "true"},
                 "cannot be written");
  expect_refused({"record", "-e", "nope:nope", "-a"}, "to change:");
  // Arguments that a user of perf would try.
  expect_refused({"record", "-F", "99", "-e", "cpu-clock", "-a"}, "'-F' is not an option here");
  expect_refused({"record", "-e", "cpu-clock", "-a", "--", "true"},
                 "'true' cannot be given together with -a: --seconds ends it");
  expect_refused({"record", "-e", "cpu-clock", "-p", "1", "--", "true"}, "together with -p PID");
  expect_refused({"record", "-e", "page-faults,task-clock", "--", "true"},
                 "give each event its own -e");
  expect_refused({"record", "-e", "page-faults:u", "--", "true"},
                 "after an event's name is not understood");
  const bool has_msr = std::filesystem::exists("/sys/bus/event_source/devices/msr");
  expect_refused({"record", "-e", "msr/tsc/", "-a"}, has_msr ? "the PMU msr only counts" : "PMU");
  expect_refused({"record", "-e", "uprobe:/bin/true", "--", "true"},
                 "does not name a file and a place in it");
}

// The process stays a zombie, because its parent may never wait for it.
TEST_F(RecordCommandTest, AProcessThatHasEndedIsNotWatchedAnyLonger) {
  const std::string file = temporary("record_command_test_zombie.data");
  ForkedChild process{::pause};
  const ProcessResult ended = after(
      command({"record", "-e", "page-faults", "-p", std::to_string(process.id()), "-o", file}),
      is_written(file), [&process](const ChildProcess&) { process.kill(); });
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.err.find(", 0 lost, 0 late"), std::string::npos) << ended.err;
  EXPECT_TRUE(WIFSIGNALED(process.wait())) << "it was a zombie until now";
}

// As with perf, which however does not catch SIGHUP. The records of the command's end are written,
// too.
TEST_F(RecordCommandTest, ASignalEndsTheCommandAsWell) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const std::string file = temporary("record_command_test_term.data");
    const std::string pid = temporary("record_command_test_pid");
    const ProcessResult ended =
        after(command({"record", "-e", "page-faults", "-o", file, "--", "sh", "-c",
                       "echo $$ >" + pid + "; exec sleep 100"}),
              is_written(pid), [signal](const ChildProcess& record) { record.signal(signal); });
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    const std::string process = contents(pid);
    EXPECT_TRUE(has_ended(std::stoi(process))) << process;
    const std::string exit =
        "EXIT misc 0x0 size 64: pid " + std::to_string(std::stoi(process)) + ",";
    EXPECT_NE(run({"decode", file}).out.find(exit), std::string::npos);
  }
}

// The terminal, the ending shell and the kernel each send a SIGHUP while the command takes long to
// end.
TEST_F(RecordCommandTest, AFileIsFinishedHoweverOftenTheTerminalHangsUp) {
  const std::string file = temporary("record_command_test_hup.data");
  const std::string pid = temporary("record_command_test_pid");
  const std::string marker = temporary("record_command_test_told");
  std::filesystem::remove(marker);
  const auto began = is_written(pid);
  ChildProcess child{command({"record", "-e", "page-faults", "-o", file, "--", "sh", "-c",
                              "trap 'echo >" + marker + "; sleep 0.5; exit' TERM; echo $$ >" + pid +
                                  "; while :; do sleep 0.01; done"})};
  int sent = 0;
  const auto begin = std::chrono::steady_clock::now();
  const ProcessResult ended = child.wait([&] {
    if (sent == 0 && began()) sent = 1, child.signal(SIGHUP);
    if (sent == 1 && std::filesystem::exists(marker)) sent = 2, child.signal(SIGHUP);
    return is_over(begin);
  });
  EXPECT_EQ(sent, 2);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.err.find(", 0 malformed"), std::string::npos) << ended.err;
  if (!is_installed("perf")) GTEST_SKIP() << "perf is not installed";
  const ProcessResult perf = shell("perf script -i " + file + " 2>&1");
  EXPECT_EQ(perf.exit_code, 0) << perf.out;
  EXPECT_NE(perf.out.find("page-faults"), std::string::npos) << perf.out;
}

// SIGPIPE ends a shell's pipeline. perfring itself ignores SIGPIPE, but the command must not.
TEST_F(RecordCommandTest, ACommandHasTheSignalsOfItsShell) {
  const ProcessResult ended =
      run({"record", "-e", "page-faults", "-o", "/dev/null", "--seconds", "60", "--", "sh", "-c",
           "{ while :; do echo x; done; } 2>&1 | head -n 1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "x\n") << "and no word of a broken pipe";
  EXPECT_EQ(ended.err.find("SIGTERM"), std::string::npos) << "it ended by itself: " << ended.err;
  const ProcessResult ignored = run({"record", "-e", "page-faults", "-o", "/dev/null", "--", "grep",
                                     "SigIgn", "/proc/self/status"});
  const ProcessResult shells = run_child({"/bin/sh", "-c", "grep SigIgn /proc/self/status"});
  EXPECT_EQ(ignored.out, shells.out);
}

TEST_F(RecordCommandTest, ACommandThatOutlivesItsTimeIsEnded) {
  const std::string pid = temporary("record_command_test_pid");
  std::filesystem::remove(pid);
  const ProcessResult ended = run({"record", "-e", "page-faults", "--seconds", "1", "--", "sh",
                                   "-c", "echo $$ >" + pid + "; exec sleep 100"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(has_ended(std::stoi(contents(pid))));
}

TEST_F(RecordCommandTest, StopsWaitingForCommandIgnoringSignals) {
  const std::string pid = temporary("record_command_test_pid");
  const ProcessResult ended =
      after(command({"record", "-e", "page-faults", "--", "sh", "-c",
                     "trap '' TERM; echo $$ >" + pid + "; exec sleep 100 >/dev/null 2>&1"}),
            is_written(pid), [](const ChildProcess& record) { record.signal(SIGTERM); });
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const pid_t process = std::stoi(contents(pid));
  EXPECT_NE(ended.err.find("was sent SIGTERM, and is still running"), std::string::npos)
      << ended.err;
  EXPECT_TRUE(os::ProcessRef::open(process)->signal(SIGKILL));
}

// A full pipe that nobody reads, and a pipe without a reader.
TEST_F(RecordCommandTest, SignalEndsRecordingThatNobodyReads) {
  const std::string pid = temporary("record_command_test_pid");
  const std::string line = "echo $$ >" + pid + "; while :; do /bin/true; sleep 0.01; done";
  std::filesystem::remove(pid);
  const ProcessResult ended = after(
      {"/usr/bin/env", "PERFRING=" + command({}).front(), "/bin/sh", "-c",
       "mkfifo \"$0\"; exec 9<>\"$0\"; head -c 65536 /dev/zero >\"$0\"; exec $PERFRING record -e "
       "page-faults -- sh -c '" +
           line + "' >\"$0\"",
       temporary("record_command_test_full")},
      is_written(pid), [](const ChildProcess& record) { record.signal(SIGTERM); });
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_NE(ended.err.find("stdout cannot be written: interrupted, and its reader is not reading"),
            std::string::npos)
      << ended.err;
  EXPECT_TRUE(has_ended(std::stoi(contents(pid))));
  const ProcessResult gone = shell("$PERFRING record -e page-faults -- sleep 100 | head -n 1");
  EXPECT_EQ(lines_of(gone.out).size(), 1U);
  EXPECT_NE(gone.err.find("stdout cannot be written: Broken pipe"), std::string::npos) << gone.err;
}

TEST_F(RecordCommandTest, AFileThatCannotBeSoughtGetsThePipesForm) {
  for (const char* const output : {"-", "/dev/stdout"}) {
    const ProcessResult ended =
        shell(std::string{"$PERFRING record -e page-faults -e changes:switches -o "} + output +
              " -- true | $PERFRING decode -");
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_NE(ended.out.find("SAMPLE"), std::string::npos) << output;
    EXPECT_NE(ended.out.find("COMM misc 0x2000"), std::string::npos) << output;
    constexpr std::size_t kEvents = 3;  // each has a HEADER_ATTR
    const auto lines = lines_of(ended.out);
    const auto is_of_the_kernel = [](const std::string& line) {  // maps of its code and its modules
      return line.find("MMAP misc 0x1 ") != std::string::npos;
    };
    const auto maps = static_cast<std::size_t>(std::ranges::count_if(lines, is_of_the_kernel));
    const std::size_t records = lines.size() - kEvents - maps;
    EXPECT_NE(ended.err.find(fmt::format("{} records, 0 lost", records)), std::string::npos)
        << ended.err;
  }
  EXPECT_FALSE(std::filesystem::exists("-"));  // in the test's working folder
}

// A file always has names, forks and maps.
TEST_F(RecordCommandTest, RequestedChangesAreInTheFileOnce) {
  const std::string file = temporary("record_command_test_once.data");
  for (const char* const change :
       {"switches", "maps", "names", "execs", "forks", "execs,forks,maps"}) {
    const ProcessResult ended = run({"record", "-e", std::string{"changes:"} + change, "-e",
                                     "page-faults", "-o", file, "--", "true"});
    EXPECT_EQ(ended.exit_code, 0) << change << ended.err;
    std::map<std::string, int> counts;
    for (const std::string& line : lines_of(run({"decode", "--json", file}).out)) {
      const Json record = parsed(line);
      const std::string type = record["record"];
      if (type == "MMAP2") ++counts[type + " " + record["addr"].dump()];
      if (type == "EXIT" || type == "COMM") ++counts[type + record["header"]["misc"].dump()];
    }
    EXPECT_GT(counts.size(), 4U) << change;
    for (const auto& [what, times] : counts) EXPECT_EQ(times, 1) << change << ": " << what;
  }
}

TEST_F(RecordCommandTest, AFileIsKeptWhereNothingIsRecorded) {
  const std::string file = temporary("record_command_test_kept.data", "of value");
  EXPECT_EQ(run({"record", "-e", "page-faults", "-o", file, "--", "/nonexistent"}).exit_code, 2);
  EXPECT_EQ(contents(file), "of value");
  EXPECT_EQ(run({"record", "-e", "page-faults", "-o", file, "--", "true"}).exit_code, 0);
  EXPECT_EQ(run({"decode", file}).exit_code, 0);
}

// As with perf: a file may contain kernel addresses, and with -a all tasks, so only its owner may
// read it.
TEST_F(RecordCommandTest, PrivateFileLeavesPreviousOneAsOld) {
  using std::filesystem::perms;
  const std::string file = temporary("record_command_test_mode.data", "of value");
  const std::string old = file + ".old";
  std::filesystem::permissions(file, perms{0644});
  ASSERT_EQ(run({"record", "-e", "page-faults", "-o", file, "--", "true"}).exit_code, 0);
  EXPECT_EQ(std::filesystem::status(file).permissions(), perms{0600});
  EXPECT_EQ(contents(old), "of value");
  const std::string first = contents(file);
  // The disk is full when half of the file is written.
  const ProcessResult full =
      run({"record", "-e", "page-faults", "-o", file, "--", "true"},
          {"/usr/bin/prlimit", "--fsize=" + std::to_string(first.size() / 2)});
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_NE(full.err.find("cannot be written: File too large"), std::string::npos) << full.err;
  EXPECT_EQ(contents(old), first);
}

TEST_F(RecordCommandTest, ANoteIsPrintedOnce) {
  const ProcessResult ended =
      run({"record", "-e", "context-switches", "-o", "/dev/null", "--", "true"}, as_nobody());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const auto lines = lines_of(ended.err);
  EXPECT_EQ(std::ranges::count(lines,
                               "perfring: note: the changes: without the kernel, which "
                               "this user may not observe"),
            1)
      << ended.err;
}

TEST_F(RecordCommandTest, RecordsAheadOfClockAreNotThrottled) {
  const std::string in_namespace =
      "unshare -m -T --monotonic -3 sh -c '{ mountpoint -q /sys/kernel/tracing || mount -t tracefs "
      "tracefs /sys/kernel/tracing; } && ";
  if (shell(in_namespace + "true'").exit_code != 0) {
    GTEST_SKIP() << "a time namespace and tracefs need root, unshare(1), and their CONFIG";
  }
  // Cause task switches on each CPU during the recording.
  const std::string busy =
      "for each in $(seq $(nproc)); do timeout 2 sh -c 'while :; do sleep 0; done' & done; ";
  // More records than fit into rings of 64 pages. When a round took one record from each ring, no
  // more arrived.
  const auto many = static_cast<unsigned long>(4000 * ::sysconf(_SC_NPROCESSORS_ONLN));
  unsigned long records = 0, lost = 0, late = 0, ahead = 0;
  for (int tries = 0; tries < 10 && records <= many; ++tries) {
    const ProcessResult ended =
        shell(busy + in_namespace +
              "exec \"$PERFRING\" record -a -e sched:sched_switch --seconds 2' >/dev/null; wait");
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_NE(ended.err.find("CLOCK_MONOTONIC is 3 s behind the kernel's"), std::string::npos)
        << ended.err;
    std::string summary = lines_of(ended.err).back();
    std::erase(summary, ',');
    ASSERT_EQ(std::sscanf(summary.c_str(), "%lu records %lu lost %lu late %lu ahead of the clock",
                          &records, &lost, &late, &ahead),
              4)
        << summary;
    EXPECT_EQ(ahead, records);
  }
  EXPECT_GT(records, many) << lost << " lost";
}

TEST_F(RecordCommandTest, EventsExplainsWhatDoesNotOpen) {
  const ProcessResult ended = run({"events", "page-faults", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(parsed(ended.out)["opens"], true);
  const ProcessResult user = run({"events", "changes:namespaces", "--json"}, as_nobody());
  EXPECT_EQ(parsed(user.out)["opens"], false) << user.out;
  EXPECT_NE(user.out.find("this user may not observe namespaces"), std::string::npos);
  EXPECT_EQ(run({"events", "no such \x01 event"}).exit_code, 2);
  EXPECT_EQ(run({"events", "L1-*-loads"}).exit_code, 0);
}

TEST_F(RecordCommandTest, ATruncatedFileIsDecodedUpToItsEnd) {
  const std::string file = temporary("record_command_test_cut.data");
  ASSERT_EQ(run({"record", "-e", "page-faults", "-o", file, "--", "true"}).exit_code, 0);
  const std::string whole = contents(file);
  const auto all = lines_of(run({"decode", file}).out).size();
  // The member `data` of struct perf_file_header. The bytes after the records are not decoded.
  std::array<std::uint64_t, 2> data{};
  std::memcpy(data.data(), whole.data() + 40, sizeof data);
  const auto end = static_cast<std::size_t>(data[0] + data[1]);
  ASSERT_LT(end, whole.size());
  const std::string cut = temporary("cut.data", whole.substr(0, end - 3));
  const ProcessResult ended = run({"decode", cut});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(lines_of(ended.out).size(), all - 1);
  EXPECT_NE(ended.err.find("only the records before that were printed"), std::string::npos)
      << ended.err;
  std::string swapped = whole;
  std::reverse(swapped.begin(), swapped.begin() + 8);
  const ProcessResult other = run({"decode", temporary("swapped.data", swapped)});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("other byte order"), std::string::npos) << other.err;
  EXPECT_EQ(run({"decode", temporary("none.data", std::string("\0\1", 2))}).exit_code, 2);
}

// A file with 3 GiB of AUX data between the records is decoded in 256 MiB of memory.
TEST_F(RecordCommandTest, AFileOfAnySizeIsDecoded) {
  const std::string file = temporary("record_command_test_small.data");
  ASSERT_EQ(run({"record", "-e", "page-faults", "-o", file, "--", "true"}).exit_code, 0);
  const std::size_t lines = lines_of(run({"decode", file}).out).size();
  const std::string whole = contents(file);
  std::array<std::uint64_t, 2> data{};
  std::memcpy(data.data(), whole.data() + 40, sizeof data);
  constexpr std::uint64_t kHole = std::uint64_t{3} << 30;
  struct {
    perf_event_header header{71, 0, sizeof *this};  // PERF_RECORD_AUXTRACE
    std::uint64_t size = kHole;
  } const aux;
  const std::uint64_t size = data[1] + sizeof aux + kHole;
  const auto at = static_cast<std::size_t>(data[0]);
  std::string begin = whole.substr(0, at);
  std::memcpy(begin.data() + 48, &size, sizeof size);
  begin.append(reinterpret_cast<const char*>(&aux), sizeof aux);
  const std::string large = temporary("record_command_test_large.data", begin);
  std::filesystem::resize_file(large, begin.size() + kHole);
  std::ofstream{large, std::ios::binary | std::ios::app}
      << whole.substr(at, static_cast<std::size_t>(data[1]));
  const std::vector<std::string> limited{"/usr/bin/prlimit", "--as=268435456"};
  const ProcessResult ended =
      run({"decode", large}, kSanitized ? std::vector<std::string>{} : limited);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(lines_of(ended.out).size(), lines + 1);
  EXPECT_EQ(shell("$PERFRING decode - <" + large).out, ended.out);
}

}  // namespace
}  // namespace perfring::cli
