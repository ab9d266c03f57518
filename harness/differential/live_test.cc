// Compares the simulated kernel with the live one.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "harness/differential/campaign.h"
#include "harness/differential/live_reference.h"
#include "harness/differential/reference_kernel.h"
#include "harness/differential/trace.h"
#include "harness/kernel/perf_event.h"
#include "harness/live/emitter.h"
#include "harness/live/require_live_kernel.h"
#include "harness/script/script.h"
#include "perfring/os/cpus.h"

namespace perfring::differential {
namespace {

class DifferentialTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!live::require_live_kernel()) return;
    cpu_ = static_cast<int>(os::online_cpus().value().front());
    on_cpu_.emplace(static_cast<std::uint32_t>(cpu_));
    auto emitter = make_emitter();
    ASSERT_TRUE(emitter) << emitter.error();
    emitter_ = *std::move(emitter);
  }

  Compared expect_equal(const CampaignOptions& options) {
    const CampaignOutcome outcome =
        run_campaign(*emitter_, options, [](const Compared&) { return false; });
    if (outcome.finding) ADD_FAILURE() << explain(*outcome.finding);
    return outcome.compared;
  }

  int cpu_ = 0;
  std::optional<live::OnCpu> on_cpu_;
  std::optional<live::Emitter> emitter_;
};

// K17, K19, K20, K29, K42: no other test checks these on a live kernel.
TEST_F(DifferentialTest, RandomScriptsShowTheSameOnBothKernels) {
  const Compared compared =
      expect_equal({.seed = 1, .scripts = 1000, .steps_max = 80, .cpu = cpu_});
  // The scripts must exercise something.
  EXPECT_EQ(compared.scripts, 1000u);
  EXPECT_GT(compared.accepted, 10000u);
  EXPECT_GT(compared.refused, 10000u);
  EXPECT_GT(compared.truncated, 500u);
  EXPECT_GT(compared.ready, 1250u);
}

TEST_F(DifferentialTest, LongScriptsShowTheSameOnBothKernels) {
  expect_equal({.seed = 1000, .scripts = 20, .steps_max = 1000, .cpu = cpu_});
}

// The live kernel and the simulated one do today what other kernels did when they were recorded.
TEST_F(DifferentialTest, TheScriptsOfTheTracesShowTheSameOnBothKernels) {
  for (const KernelTrace& trace : recorded_traces()) {
    script::Script script = trace.script;
    script.settings.word = live_word();
    const CampaignOutcome outcome = run_script(*emitter_, script, cpu_);
    if (outcome.finding) ADD_FAILURE() << trace.name << "\n" << explain(*outcome.finding);
  }
}

// K3. header.size has 16 bits. Fields other than RAW take room too.
TEST_F(DifferentialTest, CountsRecordsWithTruncatedSize) {
  const auto truncated = [this](const std::string& fields, int payload) {
    auto script = script::parse_script("pages 32\nsample_type " + fields + "\noutput " +
                                       std::to_string(payload) + "\n");
    EXPECT_TRUE(script) << fields;
    script->settings.word = live_word();
    const CampaignOutcome outcome = run_script(*emitter_, *script, cpu_);
    EXPECT_EQ(outcome.compared.accepted, 1U);
    return outcome.compared.truncated;
  };
  EXPECT_EQ(truncated("RAW", 65516), 0U);
  EXPECT_EQ(truncated("RAW", 65517), 1U);
  EXPECT_EQ(truncated("RAW|TIME|TID|CPU", 65492), 0U);
  EXPECT_EQ(truncated("RAW|TIME|TID|CPU", 65493), 1U);
}

TEST_F(DifferentialTest, RefusesSettingsThatALiveKernelCannotHave) {
  const auto other = live_word() == kernel::Word::k64 ? kernel::Word::k32 : kernel::Word::k64;
  EXPECT_THROW((LiveReference{*emitter_, {.word = other}, cpu_}), std::invalid_argument);
  EXPECT_THROW((LiveReference{*emitter_, {.start = 8}, cpu_}), std::invalid_argument);
}

}  // namespace
}  // namespace perfring::differential
