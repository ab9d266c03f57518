// Runs `perfring stress` as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/cli/stress/stress.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/verdict.h"
#include "harness/stress/run.h"
#include "perfring/version.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ProcessResult run_stress(const std::string& arguments, const std::string& before = "") {
  return run_line("stress " + arguments, before);
}

// Runs one part, checks that its invariants hold, and returns its figures.
Json part(const std::string& arguments) {
  const ProcessResult ended = run_stress(arguments + " --json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  EXPECT_THAT(ended.out, Not(HasSubstr("ThreadSanitizer")));
  const auto json = parsed(ended.out);
  EXPECT_EQ(json["verdict"], "holds");
  EXPECT_EQ(json["parts"].size(), 1U);
  const auto& only = json["parts"][0];
  EXPECT_EQ(only["attempted"],
            only["delivered"].get<std::uint64_t>() + only["lost"].get<std::uint64_t>());
  return only;
}

// Runs a part for longer and longer until its figures exceed `than`: an emulated processor is slow.
void expect_more(const std::string& part_option, const std::map<std::string, unsigned>& than) {
  Json figures;
  const auto is_more = [&](const auto& each) { return figures[each.first] > each.second; };
  for (const char* const seconds : {"0.5", "4", "30"}) {
    figures = part(part_option + " --seconds " + seconds);
    if (std::ranges::all_of(than, is_more)) break;
  }
  for (const auto& [name, figure] : than) EXPECT_GT(figures[name], figure) << name;
}

TEST(StressCommandTest, ThreadsAccountForEveryRecord) {
  expect_more("--threads", {{"delivered", 1000}, {"lost", 0}});
}

TEST(StressCommandTest, SleepersAreNeverLeftAsleepWithDataInTheRing) {
  expect_more("--sleepers", {{"delivered", 100}, {"woken", 10}});
}

TEST(StressCommandTest, KilledProcessesLeaveExactlyWhatTheyPublished) {
  expect_more("--processes", {{"delivered", 100}, {"rounds", 5}});
}

// Otherwise the test above would show nothing.
TEST(StressCommandTest, SomeProcessesAreKilledWithinARecord) {
  std::uint64_t killed_in_record = 0;
  for (int seed = 1; seed < 20 && killed_in_record == 0; ++seed) {
    killed_in_record =
        part("--processes --seconds 0.5 --seed " + std::to_string(seed))["killed_in_record"];
  }
  EXPECT_GT(killed_in_record, 0U);
}

// One part that never ran its writers, next to two that did.
TEST(StressConclusionTest, APartThatDeliversNothingShowsNothing) {
  std::vector<stress::PartReport> parts(3);
  for (stress::PartReport& each : parts) each.part = "spins", each.delivered = 7;
  EXPECT_EQ(conclusion_of(parts, false, "").verdict, Verdict::Holds);
  for (stress::PartReport& each : parts) {
    each.part = "sleeps";
    each.delivered = 0;
    const Conclusion conclusion = conclusion_of(parts, false, "");
    EXPECT_EQ(conclusion.verdict, Verdict::NotShown);
    EXPECT_EQ(conclusion.not_shown, "no record was delivered by the part sleeps");
    each.violations = {"it lost one"};
    EXPECT_EQ(conclusion_of(parts, false, "").verdict, Verdict::Violated);
    each = {.part = "spins", .delivered = 7, .violations = {}};
  }
  EXPECT_EQ(conclusion_of({}, false, "").not_shown, "no part was run");
}

TEST(StressCommandTest, ReplayLineHasEverySettingOfRun) {
  const auto replay = [](const std::string& arguments) {
    const ProcessResult ended = run_stress(arguments + " --seconds 0.1 --json");
    return parsed(ended.out).value("replay", "");
  };
  EXPECT_EQ(replay("--seed 7 --rings 2 --pages 4 --processes --keep-going"),
            "perfring stress --seed 7 --seconds 0.1 --rings 2 --pages 4 --keep-going --processes"
            "  # perfring " PERFRING_VERSION);
  EXPECT_EQ(replay(""),
            "perfring stress --seed 1 --seconds 0.1 --rings 3 --threads --sleepers --processes"
            "  # perfring " PERFRING_VERSION);
}

// The children of some daemons run with SIGCHLD ignored. waitpid() then has no status to return.
TEST(StressCommandTest, ProcessesRunWithSigchldIgnored) {
  const ProcessResult ended = run_stress("--processes --seconds 1",
                                         "python3 -c 'import os, signal, sys; "
                                         "signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
                                         "os.execvp(sys.argv[1], sys.argv[1:])'");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}

TEST(StressCommandTest, MoreRingsOfLargerSizeDeliver) {
  const auto figures = part("--threads --seconds 0.2 --rings 6 --pages 16 --seed 7");
  EXPECT_GT(figures["delivered"], 0);
}

TEST(StressCommandTest, TableNamesEveryPart) {
  const ProcessResult ended = run_stress("--seconds 0.5");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("threads"), HasSubstr("sleepers"), HasSubstr("processes"),
                               HasSubstr("All invariants hold")));
}

TEST(StressCommandTest, InterruptedRunShowsNothing) {
  for (const char* signal : {"INT", "TERM"}) {
    const ProcessResult ended = run_line_until(signal, "stress --seconds 60");
    EXPECT_EQ(ended.exit_code, 3) << ended.out;
    EXPECT_THAT(ended.out, HasSubstr("Not shown: interrupted before the end"));
  }
}

TEST(StressCommandTest, AVerdictThatCannotBeWrittenIsAnError) {
  for (const char* arguments : {"--list", "--seconds 0.2", "--seconds 0.2 --json"}) {
    EXPECT_EQ(run_stress(std::string{arguments} + " >/dev/full").exit_code, 2) << arguments;
  }
}

#ifndef STRESS_TEST_UNDER_TSAN
TEST(StressCommandTest, UndetectedFaultSaysWhatFindsIt) {
  const ProcessResult raced = run_stress("--fault no_smp_wmb --seconds 0.2");
  EXPECT_EQ(raced.exit_code, 3) << raced.out;
  EXPECT_THAT(raced.out, HasSubstr("Not shown: the fault no_smp_wmb was not found by the "
                                   "invariants; ThreadSanitizer finds it: `bazel run "
                                   "--config=tsan //:perfring -- stress --fault no_smp_wmb`"));
  const ProcessResult json = run_stress("--fault no_smp_wmb --seconds 0.2 --json");
  EXPECT_EQ(parsed(json.out)["verdict"], "not shown");
}
#endif

#ifdef STRESS_TEST_UNDER_TSAN
TEST(StressCommandTest, AFaultThatRacesIsReportedByThreadSanitizer) {
  const ProcessResult ended =
      run_stress("--seconds 20 --keep-going --fault no_smp_wmb",
                 "TSAN_OPTIONS=\"$TSAN_OPTIONS halt_on_error=1 exitcode=66\"");
  EXPECT_EQ(ended.exit_code, 66) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("WARNING: ThreadSanitizer: data race"));
}
#else
TEST(StressCommandTest, FaultIsFoundInEachPartThatHasIt) {
  const ProcessResult ended = run_stress("--seconds 40 --rings 1 --fault publishes_before_writing");
  EXPECT_EQ(ended.exit_code, 1) << ended.out;
  EXPECT_THAT(
      ended.out,
      AllOf(HasSubstr("VIOLATED threads: "), HasSubstr("VIOLATED processes: "),
            HasSubstr("replay: perfring stress --seed 1 --seconds 40 --rings 1 "
                      "--fault publishes_before_writing  # perfring " PERFRING_VERSION "\n")));
}
#endif

TEST(StressCommandTest, WrongOptionsAreNamedWithWhatIsAccepted) {
  const std::pair<const char*, const char*> cases[] = {
      {"--bogus", "--bogus"},
      {"extra", "extra"},
      {"--seconds 0", "'0' is not accepted"},
      {"--seconds nan", "'nan' is not accepted"},
      {"--pages 3", "a power of two"},
      {"--pages 2048", "from 1 to 1024"},
      {"--rings 0", "--rings"},
      {"--rings 65", "--rings"},
      {"--seed x", "--seed"},
      {"--seed -1", "'-1' is not accepted"},
      {"--fault nobody", "; 'perfring stress --list' prints all"},
      {"--fault no_smp_wmp", "--fault: 'no_smp_wmp' is not accepted: the nearest are no_smp_wmb, "},
      {"--fault no_smp_wmb --threads", "--threads: cannot be given together with --fault"},
      {"--list --seed 2", "--seed: cannot be given together with --list"},
      {"--fault ''", "--fault: '' is not accepted"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult ended = run_stress(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
  }
}

TEST(StressCommandTest, HelpNamesEveryOption) {
  const ProcessResult ended = run_stress("--help");
  EXPECT_EQ(ended.exit_code, 0);
  for (const char* text :
       {"--seconds", "--rings", "--pages", "--seed", "--threads", "--sleepers", "--processes",
        "--json", "--keep-going", "--fault", "--list", "Exit codes: 0"}) {
    EXPECT_THAT(ended.out, HasSubstr(text));
  }
}

TEST(StressCommandTest, ListSaysWhatFindsEachFault) {
  const ProcessResult ended = run_stress("--list");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("no_smp_wmb"), HasSubstr("ThreadSanitizer"),
                               HasSubstr("invariants")));
  // The second column begins at the same place in each line.
  std::set<std::size_t> places;
  std::istringstream lines{ended.out};
  for (std::string line; std::getline(lines, line);) {
    places.insert(line.find_first_not_of(' ', line.find("  ")));
  }
  EXPECT_EQ(places.size(), 1U) << ended.out;
}

}  // namespace
}  // namespace perfring::cli
