// Runs `perfring` without a command, as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/live/require_live_kernel.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/privileges.h"
#include "harness/program/sanitizers.h"
#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

using DemonstrationTest = PerfringTest;

const std::vector<std::string> kAsNobody{"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                         "--clear-groups"};

class DemonstrationLiveTest : public PerfringTest {
 protected:
  void SetUp() override {
    if (live::require_live_kernel()) PerfringTest::SetUp();
  }
};

TEST_F(DemonstrationTest, MissingPrivilegesAreNamed) {
  if (!is_root()) GTEST_SKIP() << "becoming another user needs root";
  if (!os::online_cpus()) GTEST_SKIP() << "sysfs, which lists the online CPUs, is not mounted";
  const ProcessResult ended = run({"--seconds", "1"}, kAsNobody);
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("no privilege for"), HasSubstr("lacks CAP_BPF and CAP_PERFMON")));
  EXPECT_EQ(ended.out, "");
}

// On one CPU only: for its 5 seconds the program occupies every CPU that it may use.
TEST_F(DemonstrationTest, UnprivilegedRunDrainsSimulatedKernel) {
  if (!is_root()) GTEST_SKIP() << "becoming another user needs root";
  if (!os::online_cpus()) GTEST_SKIP() << "sysfs, which lists the online CPUs, is not mounted";
  std::vector<std::string> as_nobody{"/usr/bin/taskset", "-c", std::to_string(::sched_getcpu())};
  as_nobody.insert(as_nobody.end(), kAsNobody.begin(), kAsNobody.end());
  const ProcessResult ended = run({}, as_nobody);
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("The SIMULATED kernel"), HasSubstr("no privilege for"),
                               HasSubstr("All invariants hold in 5.")));
  EXPECT_THAT(ended.err, HasSubstr("events/s"));
}

// Runs the program in a time namespace, where its clock is not the kernel's.
class TimeNamespaceTest : public DemonstrationLiveTest {
 protected:
  void SetUp() override {
    DemonstrationLiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (shell("unshare -T --monotonic -3 true").exit_code != 0) {
      GTEST_SKIP() << "a time namespace needs root, unshare(1), and CONFIG_TIME_NS";
    }
  }
  Json in_order_of_time(const std::string& offset) {
    const ProcessResult ended = run({"--seconds", "1", "--order", "time", "--json"},
                                    {"/usr/bin/unshare", "-T", "--monotonic", offset});
    EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
    return parsed(ended.out);
  }
};

TEST_F(TimeNamespaceTest, RecordsAheadOfTheClockAreTold) {
  const Json ahead = in_order_of_time("-3");
  EXPECT_GT(ahead["merge"]["ahead"].get<double>(), 0);
  EXPECT_EQ(ahead["merge"]["late"], 0);
  EXPECT_THAT(ahead["merge"]["note"].get<std::string>(),
              AllOf(HasSubstr("later than this process's clock"),
                    HasSubstr("CLOCK_MONOTONIC is 3 s behind the kernel's")));
  const Json right = in_order_of_time("0");
  EXPECT_EQ(right["merge"]["ahead"], 0);
  EXPECT_FALSE(right["merge"].contains("note"));
}

TEST_F(TimeNamespaceTest, RecordsBehindTheClockAreReported) {
  const Json lagging = in_order_of_time("3");
  EXPECT_EQ(lagging["merge"]["ahead"], 0);
  EXPECT_GT(lagging["merge"]["longest_delay_ns"].get<double>(), 2.9e9);
  EXPECT_THAT(lagging["merge"]["note"].get<std::string>(),
              HasSubstr("CLOCK_MONOTONIC is 3 s ahead of the kernel's"));
}

// `perfring inspect` reads the file that --dump wrote. It has unread records, all of them intact.
class DumpTest : public PerfringTest {
 protected:
  void expect_dump_of(const std::vector<std::string>& options) {
    const std::string file = temporary("ring.bin");
    std::vector<std::string> arguments{"--seconds", "0.3", "--payload", "24",
                                       "--pages",   "2",   "--dump",    file};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult ended = run(arguments);
    ASSERT_EQ(ended.exit_code, 0) << ended.err << ended.out;
    EXPECT_EQ(std::filesystem::file_size(file), 3U * 4096);
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms{0600});
    const ProcessResult inspected = run({"inspect", "--json", file});
    EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
    const auto ring = parsed(inspected.out);
    EXPECT_EQ(ring["size"], 8192);
    EXPECT_GE(ring["records"].size(), 1U);
    for (const auto& record : ring["records"]) {
      EXPECT_THAT(record["delivers"].get<std::string>(), AnyOf("sample", "lost")) << record;
    }
  }
};

TEST_F(DumpTest, ADumpOfTheSimulatedKernelIsInspected) {
  expect_dump_of({"--simulated"});
}

TEST_F(DumpTest, ADumpOfTheLiveKernelIsInspected) {
  if (live::require_live_kernel()) expect_dump_of({});
}

TEST_F(DumpTest, AFileThatCannotBeWrittenIsAnErrorAtOnce) {
  const ProcessResult ended =
      run({"--simulated", "--seconds", "60", "--dump", "/nonexistent/ring.bin"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, AllOf(HasSubstr("--dump: '/nonexistent/ring.bin' cannot be written: No "
                                         "such file or directory"),
                               Not(HasSubstr("Draining"))));
}

TEST_F(DumpTest, ARunThatFailsLeavesAnOldFileAsItIs) {
  std::vector<std::string> without_privileges;
  if (is_root()) without_privileges = {"/usr/bin/setpriv", "--bounding-set=-all"};
  const std::string file = temporary("old_ring.bin", "an old ring");
  const ProcessResult ended = run({"--seconds", "1", "--dump", file}, without_privileges);
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("the live kernel cannot be used"));
  EXPECT_EQ(contents(file), "an old ring");
}

// Runs the program in a mount namespace without sysfs, or with an unusable list of CPUs.
class DemonstrationWithoutSysfsTest : public PerfringTest {
 protected:
  void SetUp() override {
    PerfringTest::SetUp();
    if (!is_root() || shell("unshare -m umount -l /sys").exit_code != 0) {
      GTEST_SKIP() << "to unmount /sys needs root, and unshare(1)";
    }
  }
  ProcessResult run_without(const std::string& options) {
    return shell("unshare -m sh -c 'umount -l /sys && exec \"$PERFRING\" " + options + "'");
  }
  ProcessResult run_with_empty_list(const std::string& options) {
    return shell(
        "unshare -m sh -c 'mount --bind /dev/null /sys/devices/system/cpu/online && "
        "exec \"$PERFRING\" " +
        options + "'");
  }
};

TEST_F(DemonstrationWithoutSysfsTest, SimulatedKernelHasOnlyUsableCpus) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  const auto usable = static_cast<std::size_t>(CPU_COUNT(&set));
  for (const ProcessResult& ended : {run_without("--simulated --seconds 0.3 --json"),
                                     run_with_empty_list("--simulated --seconds 0.3 --json")}) {
    EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
    const auto json = parsed(ended.out);
    EXPECT_EQ(json["holds"], true);
    EXPECT_EQ(json["cpus"].size(), usable);
    for (const auto& cpu : json["cpus"]) EXPECT_GT(cpu["delivered"], 0);
  }
}

TEST_F(DemonstrationWithoutSysfsTest, TheLiveKernelIsRefusedWithTheReason) {
  for (const char* options : {"--seconds 0.3", "--cpus 0"}) {
    const ProcessResult missing = run_without(options);
    EXPECT_EQ(missing.exit_code, 2) << missing.out;
    EXPECT_THAT(missing.err, AllOf(HasSubstr("the online CPUs are not known"),
                                   HasSubstr("No such file"), HasSubstr("mount sysfs")));
    EXPECT_EQ(missing.out, "");
    const ProcessResult empty = run_with_empty_list(options);
    EXPECT_EQ(empty.exit_code, 2) << empty.out;
    EXPECT_THAT(empty.err, HasSubstr("nothing, the file is empty"));
  }
}

TEST_F(DemonstrationWithoutSysfsTest, RecordSaysWhatToMount) {
  const ProcessResult ended = run_without("record -a -e cpu-clock --seconds 0.1");
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("to change: mount sysfs: mount -t sysfs sysfs /sys\n"));
}

TEST_F(DemonstrationLiveTest, EveryRecordOfEveryCpuIsAccountedFor) {
  const ProcessResult ended = run({"--seconds", "0.7", "--json", "--payload", "8-3000"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("events/s"));
  const auto json = parsed(ended.out);
  EXPECT_EQ(json["holds"], true);
  EXPECT_GE(json["cpus"].size(), 1U);
  for (const auto& cpu : json["cpus"]) {
    EXPECT_GT(cpu["delivered"], 1000);
    EXPECT_GT(cpu["wakeups"], 0);
    EXPECT_EQ(cpu["attempted"],
              cpu["delivered"].get<std::uint64_t>() + cpu["lost"].get<std::uint64_t>());
  }
}

TEST_F(DemonstrationLiveTest, InEachOrderEveryRecordIsAccountedFor) {
  const ProcessResult time = run({"--seconds", "0.4", "--order", "time"});
  EXPECT_EQ(time.exit_code, 0) << time.err << time.out;
  EXPECT_THAT(time.out, AllOf(HasSubstr("In time order: "), HasSubstr("; slack "),
                              HasSubstr("All invariants hold")));
  const ProcessResult fullest = run({"--seconds", "0.4", "--order", "fullest", "--pages", "4"});
  EXPECT_EQ(fullest.exit_code, 0) << fullest.err << fullest.out;
  EXPECT_THAT(fullest.out, HasSubstr("All invariants hold"));
}

TEST_F(DemonstrationLiveTest, SmallRingAccountsForItsLosses) {
  const ProcessResult ended =
      run({"--seconds", "0.4", "--json", "--cpus", "0", "--pages", "1", "--payload", "8-2000"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const auto json = parsed(ended.out);
  EXPECT_GT(json["cpus"].at(0)["lost"], 0);
}

TEST_F(DemonstrationLiveTest, InvariantsHoldAtExtremeSettings) {
  const ProcessResult each = run({"--seconds", "0.3", "--cpus", "0", "--watermark", "0"});
  EXPECT_EQ(each.exit_code, 0) << each.err << each.out;
  const ProcessResult large =
      run({"--seconds", "0.3", "--payload", "60000-65516", "--pages", "64"});
  EXPECT_EQ(large.exit_code, 0) << large.err << large.out;
}

TEST_F(DemonstrationLiveTest, AVerdictThatCannotBeWrittenIsAnError) {
  for (const std::string form : {"--json", "--pages=256"}) {
    const ProcessResult ended = shell("\"$PERFRING\" --seconds 0.2 " + form + " >/dev/full");
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.err,
                HasSubstr("perfring: the verdict cannot be written to stdout: No space left"));
  }
}

TEST_F(DemonstrationLiveTest, TooFewDescriptorsNameLimitToRaise) {
  if (kSanitized) GTEST_SKIP() << kTooFewForASanitizer;
  int failed = 0;
  for (std::size_t files = 4; files < 64; ++files) {
    const ProcessResult ended = run_with_files(files, {"--seconds", "0.2"});
    if (ended.exit_code == 0) break;
    // With even fewer descriptors the program does not start.
    if (failed == 0 && ended.err.find("the live kernel cannot") == std::string::npos) continue;
    ++failed;
    EXPECT_EQ(ended.exit_code, 2) << files;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("Too many open files"), HasSubstr("ulimit -n")))
        << files;
  }
  EXPECT_GT(failed, 3) << "none was missing";
}

TEST_F(DemonstrationLiveTest, AnInterruptEndsItWithTheVerdictSoFar) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ChildProcess child{command({"--seconds", "60"})};
    // Wait for the first progress line, which may take long on a busy machine.
    for (int tenths = 0; tenths < 300 && !child.errors().contains("events/s"); ++tenths) {
      ::usleep(100'000);
    }
    child.signal(signal);
    const ProcessResult ended = child.wait();
    EXPECT_EQ(ended.exit_code, 3) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("events/s"));
    EXPECT_THAT(ended.out,
                HasSubstr("Not shown: interrupted before the end; nothing was violated"));
  }
}

}  // namespace
}  // namespace perfring::cli
