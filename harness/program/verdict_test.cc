#include "harness/program/verdict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace perfring {
namespace {

TEST(ConcludeTest, AViolationOutweighsWhatIsNotShown) {
  const Conclusion conclusion = conclude(true, true, "nothing was checked");
  EXPECT_EQ(conclusion.verdict, Verdict::Violated);
  EXPECT_EQ(conclusion.not_shown, "");
  EXPECT_EQ(exit_code(conclusion.verdict), 1);
  EXPECT_EQ(sentence(conclusion, "All hold"), "Invariants are violated (interrupted)");
}

TEST(ConcludeTest, ARunThatWasCutShortShowsNothing) {
  const Conclusion conclusion = conclude(false, true);
  EXPECT_EQ(conclusion.verdict, Verdict::NotShown);
  EXPECT_EQ(exit_code(conclusion.verdict), 3);
  EXPECT_EQ(sentence(conclusion, "All hold"),
            "Not shown: interrupted before the end; nothing was violated");
}

TEST(ConcludeTest, ARunThatLookedAtNothingShowsNothing) {
  const Conclusion conclusion = conclude(false, false, "no record was delivered");
  EXPECT_EQ(conclusion.verdict, Verdict::NotShown);
  EXPECT_FALSE(conclusion.interrupted);
  EXPECT_EQ(conclusion.not_shown, "no record was delivered");
}

TEST(ConcludeTest, AWholeRunWithoutAViolationHolds) {
  const Conclusion conclusion = conclude(false, false);
  EXPECT_EQ(exit_code(conclusion.verdict), 0);
  EXPECT_EQ(sentence(conclusion, "All hold"), "All hold");
}

TEST(VerdictJsonTest, BeginsWithTheSameFieldsEverywhere) {
  EXPECT_EQ(to_json(conclude(false, true)).dump(),
            R"({"verdict":"not shown","holds":false,"interrupted":true,)"
            R"("not_shown":"interrupted before the end"})");
  EXPECT_EQ(to_json(conclude(false, false))["holds"], true);
}

TEST(VerdictJsonTest, OtherCharactersAreEscapedToAscii) {
  nlohmann::ordered_json json;
  json["name"] = "\x7f\xc2\x85";
  EXPECT_EQ(dump(json), "{\n  \"name\": \"\\u007f\\u0085\"\n}\n");
}

TEST(VerdictJsonTest, TextThatIsNoUtf8IsReplaced) {
  nlohmann::ordered_json json;
  json["name"] = "x\xff";
  EXPECT_EQ(dump(json), "{\n  \"name\": \"x\\ufffd\"\n}\n");
}

}  // namespace
}  // namespace perfring
