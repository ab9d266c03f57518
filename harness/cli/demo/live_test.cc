#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/demo/live.h"
#include "harness/program/json.h"
#include "harness/program/verdict.h"
#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(LiveOptionsTest, PayloadIsASizeOrARange) {
  EXPECT_EQ(parse_payload("8")->min, 8U);
  EXPECT_EQ(parse_payload("8")->max, 8U);
  EXPECT_EQ(parse_payload("9-65516")->min, 9U);
  EXPECT_EQ(parse_payload("9-65516")->max, 65516U);
  for (const char* text : {"", "-", "7", "8-", "-8", "9-8", "65517", "8-65517", "8 ", "+8", "0x8",
                           "8-9-10", "99999999999999999999"}) {
    const auto parsed = parse_payload(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error(),
                AllOf(HasSubstr(std::string{"'"} + text + "'"), HasSubstr("from 8 to 65516")));
  }
}

TEST(LiveOptionsTest, CpusAreAListEachOnce) {
  EXPECT_EQ(*parse_cpus("0-2,5"), (std::vector<std::uint32_t>{0, 1, 2, 5}));
  EXPECT_EQ(*parse_cpus("3,1,3"), (std::vector<std::uint32_t>{1, 3}));
  for (const char* text : {"", "x", "0-", "1-0", "0,", ",0", "0;1", "4294967295", "-1"}) {
    const auto parsed = parse_cpus(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error(), HasSubstr("give CPUs such as 0 or 0-2,5"));
  }
}

TEST(LiveOptionsTest, CpusAreAmongThoseThatAreThere) {
  const std::vector<std::uint32_t> there{0, 1, 4};
  EXPECT_EQ(*choose_cpus({}, there, "online CPUs"), there);
  EXPECT_EQ(*choose_cpus({4}, there, "online CPUs"), std::vector<std::uint32_t>{4});
  EXPECT_EQ(choose_cpus({1, 2}, there, "online CPUs").error(),
            "--cpus: 2 is not among the online CPUs: 0-1,4");
}

TEST(LiveOptionsTest, WatermarkIsANumberOfBytes) {
  EXPECT_EQ(*parse_watermark("0"), 0);
  EXPECT_EQ(*parse_watermark("2147483648"), 2147483648);
  for (const char* text : {"", "-1", "2147483649", "1k", "99999999999"}) {
    EXPECT_FALSE(parse_watermark(text).has_value()) << text;
  }
}

TEST(LiveOptionsTest, ADumpIsOfARingDrainedByItself) {
  LiveOptions options{.dump = "ring.bin"};
  EXPECT_EQ(conflict(options), "");
  options.order = LiveOrder::Time;
  EXPECT_THAT(conflict(options), HasSubstr("--dump: cannot be combined with --order"));
  options = {.dump = "-"};
  EXPECT_THAT(conflict(options), HasSubstr("--dump: stdout has the verdict"));
}

// Returns an outcome without violations: 1000 records attempted, 990 accepted, 10 refused and
// reported as lost.
LiveCpuOutcome sound() {
  LiveCpuOutcome cpu{};
  cpu.cpu = 5;
  cpu.output = {.attempted = 1000, .accepted = 990, .full = 10, .failed = 0, .last_error = 0};
  cpu.audit.delivered = 990;
  cpu.audit.lost = 10;
  cpu.wakeups = 7;
  cpu.records_per_second = 1234567.8;
  return cpu;
}

TEST(CpuOutcomeTest, NothingIsViolatedWhereAllIsAccountedFor) {
  EXPECT_THAT(sound().violations(), IsEmpty());
}

TEST(CpuOutcomeTest, EachInvariantIsNamedWhenItIsViolated) {
  LiveCpuOutcome cpu = sound();
  cpu.audit.delivered = 991;
  EXPECT_THAT(cpu.violations(), ElementsAre(HasSubstr("no_invention"), HasSubstr("no_loss")));
  cpu = sound();
  cpu.audit.delivered = 989;
  EXPECT_THAT(cpu.violations(),
              ElementsAre(HasSubstr("no_loss: 1000 attempted, but 989 delivered")));
  cpu = sound();
  cpu.audit.lost = 11;
  EXPECT_THAT(cpu.violations(), ElementsAre(HasSubstr("no_loss"), HasSubstr("reported as lost")));
  cpu = sound();
  cpu.output.full = 9;
  EXPECT_THAT(cpu.violations(), ElementsAre(HasSubstr("9 refused by a full ring, but 10")));
  cpu = sound();
  cpu.audit.out_of_order = 1;
  EXPECT_THAT(cpu.violations(), ElementsAre(HasSubstr("CPU 5: order: 1")));
  cpu = sound();
  cpu.audit.corrupt = 2;
  EXPECT_THAT(cpu.violations(), ElementsAre(HasSubstr("intact: 2 corrupt")));
  cpu = sound();
  cpu.audit.malformed = 3;
  EXPECT_THAT(cpu.violations(), ElementsAre(HasSubstr("intact: 3 malformed")));
  cpu = sound();
  cpu.output.failed = 1;
  cpu.output.last_error = -95;
  EXPECT_THAT(cpu.violations(), ElementsAre(HasSubstr("1 output failed, the last with error -95")));
}

TEST(LiveReportTest, TableShowsFiguresWithVerdict) {
  const LiveOutcome outcome{.cpus = {sound()}, .seconds = 2, .interrupted = false};
  EXPECT_EQ(conclusion_of(outcome).verdict, Verdict::Holds);
  EXPECT_THAT(verdict_table(outcome),
              AllOf(HasSubstr("    5         1,000           990          10         0"),
                    HasSubstr("7   1,234,568  yes"), HasSubstr("All invariants hold in 2.0 s\n"),
                    Not(HasSubstr("VIOLATED"))));
}

TEST(LiveReportTest, MergeShowsLateEventsWithSlack) {
  LiveOutcome outcome{.cpus = {sound()}, .seconds = 2, .interrupted = false};
  EXPECT_THAT(verdict_table(outcome), Not(HasSubstr("In time order")));
  outcome.merge =
      LiveMerge{.late = 1200, .worst_late = 3, .longest_delay = 50'000, .slack = 100'000};
  EXPECT_THAT(verdict_table(outcome),
              HasSubstr("In time order: 1,200 late, by 3 ns at most; 0 ahead of the clock; "
                        "slack 100,000 ns, longest delay 50,000 ns\nAll"));
  const auto json = Json::parse(verdict_json(outcome));
  EXPECT_EQ(json["merge"]["late"], 1200);
  EXPECT_EQ(json["merge"]["ahead"], 0);
  EXPECT_EQ(json["merge"]["slack_ns"], 100'000);
  EXPECT_FALSE(json["merge"].contains("note"));
}

TEST(LiveReportTest, MergeExplainsEventsAheadOfClock) {
  LiveOutcome outcome{.cpus = {sound()}, .seconds = 2, .interrupted = false};
  outcome.merge = LiveMerge{};
  outcome.merge->ahead = 1234;
  outcome.merge->note = "note: of another clock";
  EXPECT_THAT(verdict_table(outcome), AllOf(HasSubstr("; 1,234 ahead of the clock; "),
                                            HasSubstr("\nnote: of another clock\nAll")));
  const auto json = Json::parse(verdict_json(outcome));
  EXPECT_EQ(json["merge"]["ahead"], 1234);
  EXPECT_EQ(json["merge"]["note"], "note: of another clock");
}

TEST(LiveReportTest, AViolationIsNamedAfterTheTable) {
  LiveOutcome outcome{.cpus = {sound(), sound()}, .seconds = 2, .interrupted = true};
  outcome.cpus[1].audit.delivered -= 1;
  EXPECT_EQ(conclusion_of(outcome).verdict, Verdict::Violated);
  EXPECT_THAT(verdict_table(outcome),
              AllOf(HasSubstr("  NO\n"), HasSubstr("VIOLATED CPU 5: no_loss"),
                    HasSubstr("Invariants are violated (interrupted) in 2.0 s")));
}

TEST(LiveReportTest, JsonHoldsTheSameFigures) {
  LiveOutcome outcome{.cpus = {sound()}, .seconds = 2, .interrupted = true};
  const auto json = Json::parse(verdict_json(outcome));
  EXPECT_EQ(json["verdict"], "not shown");
  EXPECT_EQ(json["holds"], false);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["not_shown"], "interrupted before the end");
  EXPECT_EQ(json["seconds"], 2.0);
  const auto& cpu = json["cpus"].at(0);
  EXPECT_EQ(cpu["cpu"], 5);
  EXPECT_EQ(cpu["attempted"], 1000);
  EXPECT_EQ(cpu["delivered"], 990);
  EXPECT_EQ(cpu["lost"], 10);
  EXPECT_EQ(cpu["wakeups"], 7);
  EXPECT_EQ(cpu["accounted"], true);
  EXPECT_TRUE(cpu["violations"].empty());
  outcome.cpus[0].audit.lost = 0;
  const auto violated = Json::parse(verdict_json(outcome));
  EXPECT_EQ(violated["holds"], false);
  EXPECT_EQ(violated["cpus"].at(0)["accounted"], false);
  EXPECT_EQ(violated["cpus"].at(0)["violations"].size(), 2U);
}

TEST(LiveReportTest, ProgressShowsRatesWithRingFill) {
  LiveProgress progress{
      .seconds = 1.5, .events_per_second = 4210331.2, .lost_per_second = 12, .fill = {0.25, 1.0}};
  EXPECT_EQ(progress_line(progress),
            "  1.5 s    4,210,331 events/s        12 lost/s  fill  25% 100%");
  progress.fill = std::vector<double>(9, 0.5);
  progress.fill[8] = 0.75;
  EXPECT_THAT(progress_line(progress), HasSubstr("50% (at most 75%)"));
}

}  // namespace
}  // namespace perfring::cli
