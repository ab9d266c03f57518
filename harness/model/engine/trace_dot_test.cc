// Tests the text of a drawing, which is the input of Graphviz. //harness/cli:commands_test has
// Graphviz draw it; //harness/model:model_catalogue_test compares the text of every violation in
// the catalogue with its trace.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/trace.h"
#include "harness/model/engine/trace_dot_testing.h"

namespace perfring::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Trace violation_of(const Program& program) {
  return explore_for_shortest(program).violation.value();
}

TEST(TraceDotTest, ThreeThreadsHaveThreeColumns) {
  Program program;
  const Var x = program.var("x");
  const Var y = program.var("y");
  program.thread_names = {"writer", "relay", "reader"};
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] {
    if (x.load(std::memory_order_relaxed) == 1) y.store(1, std::memory_order_relaxed);
  });
  program.threads.emplace_back([=] {
    if (y.load(std::memory_order_relaxed) == 1)
      check(x.load(std::memory_order_relaxed) == 1, "causality");
  });
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "causality");
  expect_complete(trace, dot);
  EXPECT_EQ(parse(dot).threads.size(), 3u);
  EXPECT_THAT(dot, HasSubstr("causality, by reader [trace_dot_test.cc:"));
}

TEST(TraceDotTest, AnUpdateThatReadsTheInitialValueIsDrawn) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back(
      [=] { check(x.fetch_add(2, std::memory_order_relaxed) != 0, "the first one"); });
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "update");
  expect_complete(trace, dot);
  EXPECT_THAT(dot, HasSubstr("#1  x = 0x0 := 0x2 relaxed rf initial "));
}

TEST(TraceDotTest, ACheckThatFailsBeforeAnyStepIsDrawn) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([] { check(false, "never"); });
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "empty");
  expect_complete(trace, dot);
  EXPECT_EQ(parse(dot).red(), std::set<std::string>{"check"});
  EXPECT_EQ(parse(dot).inside.at(1), std::set<std::string>{"check"});
}

TEST(TraceDotTest, ACheckAtTheEndThatReadsNothingIsDrawn) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.finally = [] { check(false, "never"); };
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "empty");
  expect_complete(trace, dot);
  EXPECT_EQ(parse(dot).red(), std::set<std::string>{"check"});
  EXPECT_THAT(dot, AllOf(HasSubstr("never, at the end ["), Not(HasSubstr("by at the end"))));
}

TEST(TraceDotTest, NamesAreEscapedAsGraphvizReadsThem) {
  Program program;
  const Var x = program.var("x \"y\"\\");
  program.thread_names = {"a \"b\""};
  program.threads.emplace_back([=] {
    x.store(1, std::memory_order_relaxed);
    check(false, "1 < 2 && 3 > 2");
  });
  const std::string dot = trace_dot(violation_of(program), "<&>");
  EXPECT_THAT(dot,
              AllOf(HasSubstr(R"(x \"y\"\\ := 0x1)"), HasSubstr(R"(label="a \"b\"")"),
                    HasSubstr(">1 &lt; 2 &amp;&amp; 3 &gt; 2, by a \"b\" ["),
                    HasSubstr(">&lt;&amp;&gt;<"), HasSubstr("\"1 < 2 && 3 > 2  trace_dot_test")));
}

// The trace in words, and the choice of a trace.

TEST(TraceTest, UpdateWithoutWriteIsPrintedAsNotChanged) {
  TraceEvent event;
  event.kind = Step::Kind::Update;
  event.location = "x";
  event.order = Order::Acquire;
  event.read = 7;
  EXPECT_EQ(to_string(event), "x = 0x7 not changed, acquire");
  event.written = 8;
  EXPECT_EQ(to_string(event), "x = 0x7 := 0x8 acquire");
}

// The store of 2 may be between the other two stores, but did not lead to the violation.
TEST(TraceTest, CoIsAfterTheLastStoreThatTheTraceHas) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(2, std::memory_order_relaxed); });
  program.threads.emplace_back([=] {
    x.store(1, std::memory_order_relaxed);
    x.store(3, std::memory_order_relaxed);
    check(false, "always");
  });
  unsigned violations = 0;
  ExploreOptions options;
  options.all = true;
  options.on_violation = [&](const Trace& trace) {
    ++violations;
    EXPECT_EQ(trace.events.size(), 2u);
    EXPECT_EQ(trace.events.at(1).after, 1u);
  };
  explore(program, options);
  EXPECT_EQ(violations, 3u);
}

// The shortest execution with a violation has one event fewer than the first one found.
TEST(TraceTest, TheShortestViolationIsFound) {
  Program program;
  const Var x = program.var("x"), y = program.var("y");
  program.threads.emplace_back([=] { x.store(1, std::memory_order_relaxed); });
  program.threads.emplace_back([=] {
    if (x.load(std::memory_order_relaxed) == 1) y.store(1, std::memory_order_relaxed);
    check(false, "always");
  });
  EXPECT_EQ(explore(program).violation->events.size(), 3u);
  EXPECT_EQ(violation_of(program).events.size(), 1u);
}

TEST(TraceDotTest, LegendExplainsRed) {
  Trace trace;
  trace.threads = {"one"};
  trace.events.resize(2);
  trace.events[1].overtakes = 1;
  trace.cause.what = "always";
  EXPECT_THAT(trace_dot(trace, "X"),
              AllOf(HasSubstr("overtakes #1"), HasSubstr("red: the violation, and the step")));
  trace.race = {1, 2};
  EXPECT_THAT(trace_dot(trace, "X"), HasSubstr(">red: the violation<"));
}

}  // namespace
}  // namespace perfring::model
