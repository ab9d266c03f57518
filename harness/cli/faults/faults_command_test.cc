// Tests `perfring faults` as a process, and its verdicts on faults that are found or not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/cli/faults/faults.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/oracle/invariant.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "harness/program/verdict.h"

namespace perfring::cli {
namespace {

using faults::DataRace;
using faults::Differs;
using faults::Expected;
using faults::Harness;
using faults::OneOf;
using faults::Reason;
using oracle::Invariant;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr OneOf kSome{Invariant::no_invention, Invariant::order, Invariant::late};

TEST(FaultVerdictTest, UndetectedFaultIsMissedUnlessInvisible) {
  EXPECT_EQ(judge(Invariant::intact, {}), CellVerdict::Missed);
  EXPECT_EQ(judge(kSome, {}), CellVerdict::Missed);
  EXPECT_EQ(judge(DataRace{}, {}), CellVerdict::Missed);
  EXPECT_EQ(judge(Differs{"bytes"}, {}), CellVerdict::Missed);
  EXPECT_EQ(judge(Reason::InOrder, {}), CellVerdict::Undetectable);
}

TEST(FaultVerdictTest, AFaultIsFoundAsItsInvariantOnly) {
  EXPECT_EQ(judge(Invariant::intact, {"intact", ""}), CellVerdict::Found);
  EXPECT_EQ(judge(Invariant::intact, {"no_loss", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(Invariant::intact, {"data race", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(kSome, {"no_invention", ""}), CellVerdict::Found);
  EXPECT_EQ(judge(kSome, {"order", ""}), CellVerdict::Found);
  EXPECT_EQ(judge(kSome, {"late", ""}), CellVerdict::Found);
  EXPECT_EQ(judge(kSome, {"no_loss", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(kSome, {"merged", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(kSome, {"signal 11", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(kSome, {"data race", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(DataRace{}, {"data race", ""}), CellVerdict::Found);
  EXPECT_EQ(judge(DataRace{}, {"intact", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(Differs{"bytes"}, {"bytes", ""}), CellVerdict::Found);
  EXPECT_EQ(judge(Differs{"bytes"}, {"data_head", ""}), CellVerdict::FoundOtherwise);
}

TEST(FaultVerdictTest, AnUndetectableFaultMustNotBeFound) {
  EXPECT_EQ(judge(Reason::InOrder, {"intact", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(Reason::RaceByChance, {"data race", ""}), CellVerdict::Undetectable);
  EXPECT_EQ(judge(Reason::InOrder, {kSanitizerReport, ""}), CellVerdict::FoundOtherwise);
}

TEST(FaultVerdictTest, VariantThatHoldsMustNotBeFound) {
  EXPECT_EQ(judge(faults::Holds{}, {}), CellVerdict::Holds);
  EXPECT_EQ(judge(faults::Holds{}, {"once", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(faults::Holds{}, {"data race", ""}), CellVerdict::FoundOtherwise);
  EXPECT_EQ(judge(faults::Holds{}, {kSanitizerReport, ""}), CellVerdict::FoundOtherwise);
}

TEST(JudgeUnplantedTest, OnlySomeReasonsExcuseUnplantedFault) {
  for (const Reason reason : {Reason::FenceForFence, Reason::OwnOfTheModel, Reason::KernelsDoSo,
                              Reason::AroundMemory, Reason::WaitLoop, Reason::NoConsumer}) {
    EXPECT_EQ(judge_unplanted(reason), CellVerdict::NotPlanted);
  }
  for (const Reason reason :
       {Reason::InOrder, Reason::NobodySleeps, Reason::Suffices, Reason::StepByStep}) {
    EXPECT_EQ(judge_unplanted(reason), CellVerdict::Missed);
  }
  EXPECT_EQ(judge_unplanted(faults::Holds{}), CellVerdict::Missed);
  EXPECT_EQ(judge_unplanted(faults::DataRace{}), CellVerdict::Missed);
}

TEST(FaultVerdictTest, AddressSanitizerMayFindFaultFirst) {
  EXPECT_EQ(judge(Invariant::once, {kSanitizerReport, ""}), CellVerdict::Found);
}

FaultCell cell_of(CellVerdict verdict) {
  return {&faults::catalogue().front(), Harness::Scripts, verdict, {}, ""};
}

TEST(FaultVerdictTest, OneWrongCellMeansViolation) {
  const auto verdict = [](std::vector<FaultCell> cells, bool interrupted) {
    return conclusion_of(cells, interrupted).verdict;
  };
  const FaultCell found = cell_of(CellVerdict::Found);
  const FaultCell not_run = cell_of(CellVerdict::NotRun);
  EXPECT_EQ(verdict({found, cell_of(CellVerdict::Undetectable), not_run}, false), Verdict::Holds);
  EXPECT_EQ(verdict({cell_of(CellVerdict::Holds), not_run}, false), Verdict::Holds);
  EXPECT_EQ(verdict({cell_of(CellVerdict::NotPlanted), not_run}, false), Verdict::NotShown);
  EXPECT_EQ(verdict({found, cell_of(CellVerdict::Missed)}, false), Verdict::Violated);
  EXPECT_EQ(verdict({found, cell_of(CellVerdict::FoundOtherwise)}, true), Verdict::Violated);
  EXPECT_EQ(verdict({found}, true), Verdict::NotShown);
  EXPECT_EQ(verdict({not_run}, false), Verdict::NotShown);
  EXPECT_EQ(verdict({}, false), Verdict::NotShown);
}

ProcessResult run(const std::string& arguments) {
  return run_line("faults " + arguments);
}

TEST(FaultsCommandTest, AFaultIsFoundOrUndetectableForAReason) {
  const ProcessResult ended = run("no_smp_wmb tail_too_low --harness scripts");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("tail_honest"), HasSubstr("(in order): one thread"),
                               HasSubstr("Found 1 time, held as expected 0 times, undetectable 1 "
                                         "time, not planted 0 times, not run 0 times"),
                               HasSubstr("All match the catalogue")));
}

TEST(FaultsCommandTest, JsonHasTheMessageThatFoundIt) {
  const ProcessResult ended = run("publishes_unaligned --harness scripts --json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  const auto json = parsed(ended.out.substr(ended.out.find('{')));
  EXPECT_EQ(json["verdict"], "holds");
  ASSERT_EQ(json["cells"].size(), 1U);
  const auto& cell = json["cells"][0];
  EXPECT_EQ(cell["verdict"], "found");
  EXPECT_EQ(cell["found_as"], "no_invention");
  EXPECT_THAT(cell["message"].get<std::string>(), HasSubstr(" was published, with seed "));
}

TEST(FaultsCommandTest, AKernelsFaultDiffersFromTheRecordedKernel) {
  const ProcessResult ended =
      run("space_off_by_8 publishes_before_writing tail_too_high --harness diff --json");
  const auto json = parsed(ended.out.substr(ended.out.find('{')));
  if (std::endian::native != std::endian::little) {
    EXPECT_EQ(ended.exit_code, 3) << ended.out;
    EXPECT_EQ(json["cells"][0]["not_run"], "the traces were recorded on little-endian machines");
    return;
  }
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  ASSERT_EQ(json["cells"].size(), 3U);
  EXPECT_EQ(json["cells"][0]["verdict"], "undetectable");
  EXPECT_EQ(json["cells"][1]["found_as"], "result");
  EXPECT_THAT(json["cells"][1]["message"].get<std::string>(),
              HasSubstr("trace one_byte_free, step 3: the kernel: result -28, "));
  EXPECT_EQ(json["cells"][2]["verdict"], "not planted");
}

TEST(FaultsCommandTest, AFaultThatIsNotPlantedShowsNothing) {
  const ProcessResult ended = run("distance_modulo --harness scripts");
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("(model's own)"), HasSubstr("not planted 1 time")));
}

#ifndef STRESS_TEST_UNDER_TSAN
TEST(FaultsCommandTest, ThreadSanitizersColumnIsNotRunWithoutIt) {
  const ProcessResult ended = run("no_smp_wmb --harness tsan");
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("not run, tsan: this build has no "),
                    HasSubstr("Not shown: none of these faults is planted and run in this build")));
}
#endif

TEST(FaultsCommandTest, AnInterruptEndsItWithWhatThereIs) {
  for (const char* signal : {"INT", "TERM"}) {
    const ProcessResult ended = run_line_until(signal, "faults");
    EXPECT_EQ(ended.exit_code, 3) << ended.out;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("no_control_dependency"),
                                 HasSubstr("Not shown: interrupted before the end")));
  }
}

TEST(FaultsCommandTest, TheListHasTheCatalogue) {
  const ProcessResult ended = run("--list");
  EXPECT_EQ(ended.exit_code, 0);
  const auto json = parsed(run("--list --json").out);
  EXPECT_EQ(json["faults"].size(), faults::catalogue().size());
  for (const faults::Fault& fault : faults::catalogue()) {
    EXPECT_THAT(ended.out, HasSubstr(std::string{fault.name} + " "));
  }
}

TEST(FaultsCommandTest, WrongOptionsAreNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"no_smp_wmp", "'no_smp_wmp' is not accepted: the nearest are no_smp_wmb, "},
      {"nothing", "; 'perfring faults --list' prints all"},
      {"--list --harness sim", "--harness: cannot be given together with --list"},
      {"--harness none", "--harness: 'none' is not accepted: give one of scripts, sim, stress, "},
      {"--json --markdown", "--json: cannot be given together with --markdown"},
      {"--bogus", "--bogus"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
  }
}

}  // namespace
}  // namespace perfring::cli
