// Runs `perfring check` as a process, and checks its exit code and output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CheckCommandTest, TheSourceThatShipsIsProvedInBothForms) {
  const ProcessResult ended = run_check("--json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  const auto json = parsed(ended.out);
  EXPECT_EQ(json["verdict"], "holds");
  EXPECT_EQ(json["program"], "ring");
  EXPECT_EQ(json["records"], 6);
  ASSERT_EQ(json["cases"].size(), 2u);
  for (const auto& each : json["cases"]) EXPECT_GT(each["executions"], 100);
}

TEST(CheckCommandTest, ExecutionsAreCountedAsGenMcCountsThem) {
  const ProcessResult ended = run_check("protocol --records 5 --drains 5 --form A --json");
  EXPECT_EQ(parsed(ended.out)["cases"][0]["executions"], 2190) << ended.out;
}

TEST(CheckCommandTest, AViolationIsPrintedWithItsExecution) {
  const ProcessResult ended = run_check("protocol --fault no_full_fence");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("kernel"), HasSubstr("user"), HasSubstr("[protocol.cc:"),
                               HasSubstr(" rf #"), HasSubstr(" co after #"),
                               HasSubstr("data race, by kernel"), HasSubstr("VIOLATED in form B")));
  const ProcessResult in_a = run_check("protocol --fault no_full_fence --form A");
  EXPECT_EQ(in_a.exit_code, 3);
  EXPECT_THAT(in_a.out, HasSubstr("no_full_fence was not found here; `perfring check protocol "
                                  "--fault no_full_fence` finds it in form B"));
}

TEST(CheckCommandTest, JsonHasTheSameExecution) {
  const ProcessResult ended = run_check("wrong/message_passing_load --json");
  EXPECT_EQ(ended.exit_code, 1);
  const auto violation = parsed(ended.out)["violation"];
  EXPECT_EQ(violation["what"], "data race");
  EXPECT_EQ(violation["threads"], (std::vector<std::string>{"sender", "receiver"}));
  EXPECT_EQ(violation["race"], (std::vector<int>{1, 4}));
  ASSERT_EQ(violation["events"].size(), 4u);
  const auto& flag_read = violation["events"][2];
  EXPECT_EQ(flag_read["location"], "flag");
  EXPECT_EQ(flag_read["thread"], 1);
  EXPECT_EQ(flag_read["reads_from"], 2);
  EXPECT_EQ(violation["events"][1]["coherence_after"], 0);
  EXPECT_THAT(flag_read["where"].get<std::string>(), HasSubstr("programs.cc:"));
}

TEST(CheckCommandTest, AReachedBoundIsNoProof) {
  for (const char* bound : {"--executions 10", "--events 20", "--seconds 0.0001"}) {
    const ProcessResult ended = run_check(std::string{"protocol --records 8 --drains 8 "} + bound);
    EXPECT_EQ(ended.exit_code, 3) << bound;
    EXPECT_THAT(ended.out, HasSubstr("Not shown: bound reached: more than")) << bound;
  }
}

TEST(CheckCommandTest, LitmusTestsKeepToTheBounds) {
  std::string ops;
  for (int i = 0; i < 300; ++i) ops += R"(["R", "a", "x", "rlx"],)";
  const std::string file = temporary(
      "bounded.json",
      R"([{"name": "X", "race": false, "locations": {"x": "atomic"}, "observed": [], "ops": [
          [["W", "x", 1, "rlx"]], [)" +
          ops + R"(["F", "sc"]]], "allowed": [{}]}])");
  EXPECT_EQ(run_check("--litmus " + file).exit_code, 0);
  for (const char* bound : {"--executions 10", "--events 20", "--memory 1"}) {
    const ProcessResult ended = run_check("--litmus " + file + " " + bound);
    EXPECT_EQ(ended.exit_code, 3) << bound;
    EXPECT_THAT(ended.out, HasSubstr("X: not shown: more than")) << bound;
  }
}

TEST(CheckCommandTest, AnInterruptIsNoProof) {
  const ProcessResult ended = run_line_until("INT", "check protocol --records 30 --drains 30");
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("form A"), HasSubstr("Not shown: interrupted")));
}

TEST(CheckCommandTest, MergingIsComparedWithNotMerging) {
  const ProcessResult ended = run_check("ring --records 4 --compare --json");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  for (const auto& each : parsed(ended.out)["cases"]) {
    EXPECT_GT(each["merged"], 0);
    EXPECT_TRUE(each["differences"].empty());
  }
}

TEST(CheckCommandTest, ListHasFaultsBesidePrograms) {
  EXPECT_THAT(
      run_check("--list").out,
      AllOf(HasSubstr("ring/nested"), HasSubstr("wrong/peterson"), HasSubstr("aya_until_2026"),
            HasSubstr("are read: violated in form B and on machines"),
            HasSubstr("violated on machines")));
  EXPECT_GT(parsed(run_check("--list --json").out)["programs"].size(), 20u);
}

TEST(CheckCommandTest, FencesPrintsTheTableThatIsCheckedIn) {
  const ProcessResult ended = run_check("--fences");
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
  ASSERT_THAT(ended.out, HasSubstr("store-store fence (smp_wmb)"));
  EXPECT_THAT(contents(environment_variable("FENCES")), HasSubstr(ended.out));
}

TEST(CheckCommandTest, WrongOptionsAreNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"none", "PROGRAM: 'none' is not accepted: give one of ring, ring/fold"},
      {"--fault none", "'none' is not accepted for ring: the nearest are "},
      {"--fault no_aquire_fence", "no_acquire_fence, "},
      {"wrong/seqlock_reader --fault x",
       "'x' is not accepted for wrong/seqlock_reader: it has no faults"},
      {"--records 0", "--records: '0' is not accepted: give a number from 1 to 64"},
      {"--lengths 2,x", "--lengths: 'x' is not accepted"},
      {"--lengths ,", "--lengths: '' is not accepted"},
      {"--lengths 3,", "--lengths: '' is not accepted"},
      {"--lengths 2,9", "--lengths: '9' is not accepted: give 2 to 7"},
      {"--form C", "--form: 'C' is not accepted: give one of A, B"},
      {"correct/dekker --records 2", "correct/dekker has a fixed size"},
      {"correct/dekker --form A", "only one form"},
      {"--seconds 0", "--seconds: '0' is not accepted: give a number of seconds"},
      {"--seconds nan", "--seconds: 'nan' is not accepted"},
      {"--executions 0", "--executions: '0' is not accepted: give a number from 1 to"},
      {"--events 5001", "--events: '5001' is not accepted: give a number from 1 to 5000"},
      {"ring --list", "program: cannot be given together with --list"},
      {"--fences --fault no_smp_wmb", "--fault: cannot be given together with --fences"},
      {"--fences --json", "--json: cannot be given together with --fences"},
      {"--list --seconds 1", "--seconds: cannot be given together with --list"},
      {"--litmus /nowhere", "'/nowhere' cannot be read: No such file"},
      {"--litmus x --merge", "--merge: cannot be given together with --litmus"},
      {"--litmus x --model c11",
       "--model: 'c11' is not accepted: give one of rc11, aarch64, riscv"},
      {"ring --model lkmm", "--model: lkmm cannot run ring: choose protocol"},
      {"protocol --model lkmm --fault release_for_full",
       "--model: lkmm cannot run the fault release_for_full: the kernel has no release fence"},
      {"ring --model riscv --form B", "--model: riscv has only form A"},
      {"ring --model riscv --merge", "--model: riscv cannot merge"},
      {"protocol --model aarch64 --compare", "--model: aarch64 cannot merge"},
      {"correct/dekker --model aarch64",
       "--model: aarch64 cannot run correct/dekker, whose verdict is known only for RC11: choose "},
      {"--fences --model riscv", "--model: cannot be given together with --fences"},
      {"--litmus " + temporary("bad.json", "[{\"name\": \"X\"}]"),
       "bad.json': program X: field 'race' is missing"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult ended = run_check(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
  }
}

TEST(CheckCommandTest, OptionsMayStandBeforeOrAfterTheProgram) {
  for (const char* line : {"--lengths 3,2,4 ring", "ring --lengths 3,2,4", "--lengths=3,2,4 ring",
                           "--json --lengths 3,2,4 ring", "--form A ring --lengths 3,2,4"}) {
    EXPECT_EQ(run_check(std::string{line} + " --records 3").exit_code, 0) << line;
  }
}

TEST(CheckCommandTest, ALitmusFileWithoutAProgramIsRefused) {
  const ProcessResult ended = run_check("--litmus " + temporary("none.json", "[]"));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, HasSubstr("none.json' has no program"));
}

TEST(CheckCommandTest, EachDifferenceOfALitmusFileIsPrinted) {
  const std::string program =
      R"({"name": "X", "race": false, "locations": {"x": "atomic"}, "observed": ["1:a"],
          "ops": [[["W", "x", 1, "rlx"]], [["R", "a", "x", "rlx"]]], "genmc_executions": 2,
          "allowed": [)";
  const std::string good = temporary("good.json", "[" + program + R"({"1:a": 0}, {"1:a": 1}]}])");
  const std::string wrong = temporary("wrong.json", "[" + program + R"({"1:a": 0}, {"1:a": 2}]}])");
  const ProcessResult agrees = run_check("--litmus " + good);
  EXPECT_EQ(agrees.exit_code, 0);
  EXPECT_THAT(agrees.out, HasSubstr("1 program, 2 executions; 0 differences"));
  const ProcessResult differs = run_check("--litmus " + wrong);
  EXPECT_EQ(differs.exit_code, 1);
  EXPECT_THAT(differs.out, AllOf(HasSubstr(R"(X: not found: {"1:a":2})"),
                                 HasSubstr(R"(X: not allowed: {"1:a":1})")));
}

TEST(CheckCommandTest, TheSourceThatShipsIsProvedForMachines) {
  for (const std::string machine : {"aarch64", "riscv"}) {
    const ProcessResult ended = run_check("ring --records 3 --drains 2 --json --model " + machine);
    EXPECT_EQ(ended.exit_code, 0) << ended.out;
    const auto json = parsed(ended.out);
    EXPECT_EQ(json["model"], machine);
    ASSERT_EQ(json["cases"].size(), 1u);
    EXPECT_GT(json["cases"][0]["executions"], 10);
  }
  EXPECT_THAT(run_check("protocol --model riscv").out,
              HasSubstr("Holds in every execution that RISC-V allows"));
  EXPECT_THAT(run_check("protocol --model lkmm").out,
              HasSubstr("Holds in every execution that LKMM allows"));
}

// RC11 cannot find it in form A, because RC11 has no load buffering.
TEST(CheckCommandTest, AMissingFullFenceIsFoundInFormA) {
  const ProcessResult ended = run_check("--model aarch64 --fault no_full_fence");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("intact: "), HasSubstr("in the order in which memory sees"),
                    HasSubstr(" overtakes #"), HasSubstr("VIOLATED in AArch64")));
  const auto events =
      parsed(run_check("--model aarch64 --fault no_full_fence --json").out)["violation"]["events"];
  EXPECT_TRUE(
      std::ranges::any_of(events, [](const Json& event) { return event.contains("overtakes"); }));
  EXPECT_EQ(run_check("--model riscv --fault release_for_full --records 2").exit_code, 0);
  const ProcessResult small = run_check("--model riscv --fault no_control_dependency --records 1");
  EXPECT_EQ(small.exit_code, 3);
  EXPECT_THAT(small.out, HasSubstr("--model riscv --fault no_control_dependency` finds"));
}

// A thread continues after a failed check. A length of 0 must not make the drain loop forever.
TEST(CheckCommandTest, AProgramForMachinesEndsWhereALengthIsZero) {
  const ProcessResult ended =
      run_check("protocol --model aarch64 --fault header_read_twice --seconds 60");
  EXPECT_EQ(ended.exit_code, 1) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("in_ring: a record extends past data_head"));
}

// Load buffering, which RC11 forbids. kUpdate has a fetch-add, which only RC11 supports.
constexpr const char* kLoadBuffering =
    R"({"name": "LB", "locations": {"x": "", "y": ""}, "observed": ["0:a", "1:b"],
        "ops": [[["R", "a", "x", "rlx"], ["W", "y", 1, "rlx"]],
                [["R", "b", "y", "rlx"], ["W", "x", 1, "rlx"]]], )";
constexpr const char* kThree = R"([{"0:a":0,"1:b":0}, {"0:a":0,"1:b":1}, {"0:a":1,"1:b":0}])";
constexpr const char* kFour =
    R"([{"0:a":0,"1:b":0}, {"0:a":0,"1:b":1}, {"0:a":1,"1:b":0}, {"0:a":1,"1:b":1}])";
constexpr const char* kUpdate =
    R"({"name": "FA", "race": false, "locations": {"x": ""}, "observed": ["x"],
        "ops": [[["FA", "a", "x", 1, "rlx"]]], "allowed": [{"x": 1}])";

TEST(CheckCommandTest, ALitmusFileIsRunUnderTheRequestedModel) {
  const std::string program = std::string{kLoadBuffering} + R"("race": false, "allowed": )" +
                              kThree + R"(, "allowed_aarch64": )" + kFour +
                              R"(, "executions_aarch64": 4, "allowed_riscv": )" + kThree +
                              R"(, "allowed_lkmm": null})";
  const std::string file =
      "--litmus " + temporary("models.json", R"({"about": "", "programs": [)" + program + "]}");
  EXPECT_EQ(run_check(file).exit_code, 0);
  EXPECT_EQ(run_check(file + " --model rc11").exit_code, 0);
  const ProcessResult aarch64 = run_check(file + " --model aarch64");
  EXPECT_EQ(aarch64.exit_code, 0);
  EXPECT_THAT(aarch64.out, AllOf(HasSubstr("LB: agrees: 4 outcomes, 4 executions"),
                                 HasSubstr("AArch64: 1 program, 4 executions; 0 differences"),
                                 HasSubstr("was compared with the axioms on 1 program\n")));
  const ProcessResult riscv = run_check("--model riscv " + file);
  EXPECT_EQ(riscv.exit_code, 1);
  EXPECT_THAT(riscv.out,
              AllOf(HasSubstr("LB: DIFFERS"), HasSubstr(R"(LB: not allowed: {"0:a":1,"1:b":1})")));
  const auto json = parsed(run_check(file + " --json --model riscv").out);
  EXPECT_EQ(json["verdict"], "violated");
  EXPECT_EQ(json["model"], "riscv");
  EXPECT_EQ(json["programs"][0]["result"], "DIFFERS");
  EXPECT_EQ(json["programs"][0]["outcomes"].size(), 4u);
  EXPECT_EQ(json["programs"][0]["executions"], 4);
  EXPECT_EQ(json["programs"][0]["differences"].size(), 1u);
}

// The axioms allow a store that depends only on its own value. The search has none.
TEST(CheckCommandTest, SearchMayFindLessThanAxiomsAtBranch) {
  const std::string program =
      R"({"name": "SELF", "locations": {"x": "", "y": ""}, "observed": ["0:a", "1:a"], "ops": [)"
      R"([["R", "a", "y", "rlx"], ["IF", "a", 1, [["W", "x", 1, "rlx"]]]],)"
      R"([["R", "a", "x", "rlx"], ["W", "x", 1, "rlx"], ["IF", "a", 1, [["W", "y", 1, "rlx"]]]]],)"
      R"("allowed_aarch64": [{"0:a": 0, "1:a": 0}, {"0:a": 1, "1:a": 1}]})";
  const ProcessResult ended =
      run_check("--model aarch64 --litmus " + temporary("branch.json", "[" + program + "]"));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("SELF: agrees: 2 outcomes"),
                               HasSubstr("was compared with the axioms on 1 program\n")));
}

TEST(CheckCommandTest, LitmusFileSilentOnModelShowsNothing) {
  const std::string program = std::string{kLoadBuffering} + R"("allowed_aarch64": null})";
  const ProcessResult ended =
      run_check("--model aarch64 --litmus " + temporary("twice.json", "[" + program + "]"));
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("LB: nothing expected: 4 outcomes"),
                               HasSubstr(R"(LB: allowed: {"0:a":1,"1:b":1})"),
                               HasSubstr("the file has no expectation for AArch64")));
}

// A misspelled register removes the dependency, so that the verdict is about another program.
TEST(CheckCommandTest, NoteNamesEachUnassignedRegister) {
  const auto notes = [](const std::string& ops, const std::string& observed) {
    const std::string program =
        R"({"name": "P", "locations": {"x": "", "y": ""}, "race": false, "allowed": [],)"
        R"("observed": [)" +
        observed + R"(], "ops": [)" + ops + "]}";
    const ProcessResult ended =
        run_check("--json --litmus " + temporary("unset.json", "[" + program + "]"));
    return parsed(ended.out)["programs"][0]["notes"].get<std::vector<std::string>>();
  };
  EXPECT_THAT(notes(R"([["R", "a", "x", "rlx"], ["CTRL", "b"], ["WR", "x", "c"],)"
                    R"( ["IF", "d", 1, [["ASSUME", "e", 1]]], ["CP", ["a", "f"]]], [])",
                    R"("x", "0:a", "0:g", "1:a")"),
              ElementsAre("thread 0, operation 2: no operation before it assigns 'b'",
                          "thread 0, operation 3: no operation before it assigns 'c'",
                          "thread 0, operation 4: no operation before it assigns 'd'",
                          "thread 0, operation 5: no operation before it assigns 'e'",
                          "thread 0, operation 6: no operation before it assigns 'f'",
                          "field 'observed': no operation of thread 0 assigns '0:g'",
                          "field 'observed': no operation of thread 1 assigns '1:a'"));
  EXPECT_THAT(notes(R"([["FA", "a", "x", 1, "rlx"], ["IF", "a", 0, [["R", "b", "y", "rlx"]]],)"
                    R"( ["CTRL", "b"]], [["CTRL", "a"], ["R", "a", "x", "rlx"]])",
                    R"("0:b", "1:a")"),
              ElementsAre("thread 1, operation 1: no operation before it assigns 'a'"));
  const std::string file =
      temporary("unset.json", std::string{"["} + kLoadBuffering + R"("race": false, "allowed": )" +
                                  kThree + "}]");
  EXPECT_THAT(run_check("--litmus " + file).out, Not(HasSubstr("note")));
}

TEST(CheckCommandTest, AProgramThatTheModelDoesNotKnowIsRefused) {
  const std::string good =
      std::string{kLoadBuffering} + R"("allowed_riscv": )" + kFour + R"(, "race": false})";
  const std::string wrong =
      std::string{kLoadBuffering} + R"("allowed_riscv": )" + kThree + R"(, "race": false})";
  const auto run_both = [](const std::string& first, const std::string& rest) {
    return run_check("--model riscv --litmus " +
                     temporary("refused.json", "[" + first + ", " + kUpdate + rest + "}]"));
  };
  const ProcessResult refused = run_both(good, "");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, AllOf(HasSubstr("LB: agrees"),
                                 HasSubstr("FA: refused: only RC11 has plain accesses and updates"),
                                 HasSubstr("Not shown: RISC-V cannot run program FA")));
  EXPECT_EQ(run_both(wrong, "").exit_code, 1);
  const ProcessResult result = run_both(good, R"(, "allowed_riscv": null)");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("FA: not expressible"));
}

}  // namespace
}  // namespace perfring::cli
