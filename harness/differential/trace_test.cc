// Compares the simulated kernel with recordings of live kernels.

#include "harness/differential/trace.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace perfring::differential {
namespace {

std::optional<Difference> replay(const KernelTrace& trace) {
  Compared compared;
  RecordedReference reference{trace};
  return compare(trace.script, reference, compared);
}

class KernelTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    const bool little = std::endian::native == std::endian::little;
    if (!little) GTEST_SKIP() << "the traces were recorded on little-endian machines";
    ASSERT_GE(recorded_traces().size(), 45u);
  }
};

TEST_F(KernelTraceTest, TheSimulatedKernelShowsWhatLiveKernelsShowed) {
  Compared compared;
  for (const KernelTrace& trace : recorded_traces()) {
    ASSERT_TRUE(trace.little_endian) << trace.name;
    RecordedReference reference{trace};
    if (const auto difference = compare(trace.script, reference, compared)) {
      ADD_FAILURE() << trace.name << ", step " << difference->step << ": " << difference->what
                    << "\n"
                    << to_text(trace.script);
    }
  }
  // The traces must exercise something.
  EXPECT_GE(compared.scripts, 45u);
  EXPECT_GT(compared.accepted, 300u);
  EXPECT_GT(compared.refused, 100u);
  EXPECT_GT(compared.truncated, 20u);
  EXPECT_GT(compared.ready, 50u);
}

TEST_F(KernelTraceTest, EveryChangedNumberIsFoundAtItsStep) {
  const std::vector<std::pair<std::string, std::function<void(TracedStep&)>>> changes{
      {"result", [](TracedStep& traced) { traced.step.observed.result ^= 1; }},
      {"data_head", [](TracedStep& traced) { traced.step.observed.head += 8; }},
      {"data_tail", [](TracedStep& traced) { traced.step.observed.tail -= 8; }},
      {"LOST count", [](TracedStep& traced) { ++traced.step.observed.lost[0]; }},
      {"LOST count", [](TracedStep& traced) { ++traced.step.observed.lost[1]; }},
      {"bytes",
       [](TracedStep& traced) {
         if (traced.change.digest) {
           *traced.change.digest ^= 1;
         } else if (!traced.change.bytes.empty()) {
           traced.change.bytes.back() ^= std::byte{1};
         } else {
           traced.change = {.offset = 5, .bytes{std::byte{0x5a}, std::byte{0xa5}}, .digest{}};
         }
       }},
  };
  for (const KernelTrace& trace : recorded_traces()) {
    for (std::size_t i = 0; i < trace.steps.size(); i += 7) {
      for (const auto& [in, change] : changes) {
        KernelTrace changed = trace;
        change(changed.steps[i]);
        const auto difference = replay(changed);
        ASSERT_TRUE(difference) << trace.name << ", step " << i + 1 << ", " << in;
        ASSERT_EQ(difference->step, i + 1) << trace.name << ", " << in;
        ASSERT_EQ(difference->in, in) << trace.name << ", step " << i + 1;
      }
    }
  }
}

TEST_F(KernelTraceTest, TextIsReadBackAsItWasPrinted) {
  for (const KernelTrace& trace : recorded_traces()) {
    const std::string text = to_text(trace);
    const auto again = parse_traces(text);
    ASSERT_TRUE(again) << trace.name << ": " << again.error();
    EXPECT_EQ(to_text(again->at(0)), text) << trace.name;
    EXPECT_EQ(again->at(0).name, trace.name);
  }
}

std::string error_of(std::string_view text) {
  const auto traces = parse_traces(text);
  return traces ? "no error" : traces.error();
}

TEST(ParseTracesTest, ErrorNamesOffendingLine) {
  const std::string observed = " => 0 head 0 tail 0 lost 0 0 time 0";
  EXPECT_EQ(error_of("poll" + observed), "no error");
  EXPECT_EQ(error_of(""), "a trace without a step");
  EXPECT_EQ(error_of("page_size 5000"), "line 1: page_size: a power of two from 4096 to 65536");
  EXPECT_EQ(error_of("byte_order middle"), "line 1: byte_order: little or big");
  EXPECT_EQ(error_of("cpu x"), "line 1: cpu: not a valid value");
  EXPECT_EQ(error_of("ids 1"), "line 1: ids: not a valid value");
  EXPECT_EQ(error_of("\npages 3"), "line 2: a ring of 3 pages: a power of two up to 1024");
  EXPECT_EQ(error_of("poll"), "line 1: neither a setting nor STEP => OBSERVATION");
  EXPECT_EQ(error_of("jump" + observed), "line 1: 'jump': not a step or a setting");
  EXPECT_EQ(error_of("output 1 second" + observed),
            "line 1: there is no second event: set 'events 2'");
  EXPECT_EQ(error_of("output 1" + observed + "\n> at 0 poll" + observed),
            "line 2: a real kernel's trace has no nested steps");
  EXPECT_EQ(error_of("poll => 0 head 0"),
            "line 1: the observation must be RESULT head N tail N lost N N time N");
  EXPECT_EQ(error_of("poll" + observed + " bytes 4095 0102"), "line 1: bytes outside the ring");
  EXPECT_EQ(error_of("poll" + observed + " bytes 0 012"), "line 1: bytes that are not hexadecimal");
  EXPECT_EQ(error_of("poll" + observed + " bytes 0 0g"), "line 1: bytes that are not hexadecimal");
  EXPECT_EQ(error_of("poll" + observed + " digest z"), "line 1: 'z' is not a digest");
  EXPECT_EQ(error_of("poll" + observed + " more"), "line 1: 'more': bytes or digest is expected");
  EXPECT_EQ(error_of("poll" + observed + " digest 1 2"),
            "line 1: unexpected text at the end of the line");
  EXPECT_EQ(error_of("poll" + observed + "\npages 2"), "line 2: a setting after the first step");
  EXPECT_EQ(error_of("poll" + observed + "\ncpu 2"), "line 2: cpu: after the first step");
  EXPECT_EQ(error_of("trace"), "line 1: trace: the name must be one word");
  EXPECT_EQ(error_of("trace a b"), "line 1: trace: the name must be one word");
  EXPECT_EQ(error_of("trace a\npages 2\ntrace b"), "line 3: the previous trace has no step");
  EXPECT_EQ(error_of("pages 2\ntrace b"), "line 2: the previous trace has no step");
  EXPECT_EQ(error_of("trace a\npoll" + observed + "\ntrace b"), "a trace without a step");
  EXPECT_EQ(error_of("trace a\npoll" + observed + "\ntrace a"), "line 3: a second trace 'a'");
}

// The first trace may have no name. Each trace has its own settings.
TEST(ParseTracesTest, ATextHoldsSeveralTraces) {
  const std::string observed = " => 0 head 0 tail 0 lost 0 0 time 0\n";
  const auto traces =
      parse_traces("pages 2\ncpu 3\npoll" + observed + "# and\ntrace second\ncpu 4\npoll" +
                   observed + "poll" + observed + "trace third\npoll" + observed);
  ASSERT_TRUE(traces) << traces.error();
  ASSERT_EQ(traces->size(), 3U);
  const auto is = [&](std::size_t i, const std::string& name, std::uint64_t pages, unsigned cpu,
                      std::size_t steps) {
    const KernelTrace& trace = traces->at(i);
    EXPECT_EQ(trace.name, name);
    EXPECT_EQ(trace.script.settings.pages, pages) << name;
    EXPECT_EQ(trace.identity.cpu, cpu) << name;
    EXPECT_EQ(trace.script.steps.size(), steps) << name;
    EXPECT_EQ(trace.steps.size(), steps) << name;
  };
  is(0, "", 2, 3, 1);
  is(1, "second", 1, 4, 2);
  is(2, "third", 1, rig::Identity{}.cpu, 1);
}

}  // namespace
}  // namespace perfring::differential
