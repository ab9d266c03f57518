// The picture of a violation, as what Graphviz is told. //harness/cli:check_test has it drawn.

#include "harness/model/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "harness/model/catalogue.h"
#include "harness/model/explorer.h"

namespace perfring::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kRelaxed = std::memory_order_relaxed;

// What the text says.
struct Drawn {
  std::map<std::string, std::string> nodes;                 // by name, their lines
  std::vector<std::pair<std::string, std::string>> arrows;  // in colour
  std::map<std::size_t, std::pair<int, int>> threads;       // their left and right ends
  std::map<std::size_t, std::set<std::string>> inside;      // their nodes

  std::set<std::string> red() const {
    std::set<std::string> names;
    for (const auto& [name, line] : nodes) {
      if (line.find(" color=red,") != std::string::npos) names.insert(name);
    }
    return names;
  }
};

Drawn parse(const std::string& dot) {
  const std::regex cluster{R"(  subgraph cluster_(\d+) \{)"};
  const std::regex ends{R"x(    bb="(\d+),0,(\d+),\d+")x"};
  const std::regex node{R"(    (\w+) \[label=.*)"};
  Drawn drawn;
  std::size_t thread = 0;
  std::istringstream lines{dot};
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, cluster)) {
      thread = std::stoul(found[1]);
    } else if (std::regex_match(line, found, ends)) {
      drawn.threads[thread] = {std::stoi(found[1]), std::stoi(found[2])};
    } else if (line.find(" -> ") != std::string::npos) {
      const bool program_order = line.find("color=gray60") != std::string::npos;
      std::istringstream words{line};
      std::string from, arrow, to;
      words >> from >> arrow >> to;
      if (!program_order) drawn.arrows.emplace_back(from, to);
    } else if (std::regex_match(line, found, node)) {
      drawn.nodes[found[1]] = line;
      drawn.inside[thread].insert(found[1]);
    }
  }
  return drawn;
}

std::string name(std::size_t number) {
  return "e" + std::to_string(number);
}

std::set<std::string> red_of(const Trace& trace) {
  if (!trace.race.empty()) return {name(trace.race[0]), name(trace.race[1])};
  std::set<std::string> red{"check"};
  std::size_t last = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].thread == trace.cause.thread) last = i + 1;
  }
  if (last != 0) red.insert(name(last));
  return red;
}

void expect_threads_from_left_to_right(const Trace& trace, const Drawn& drawn) {
  int right = -1;
  for (const auto& [thread, ends] : drawn.threads) {
    EXPECT_GT(ends.first, right);
    right = ends.second;
    for (const std::string& node : drawn.inside.at(thread)) {
      std::smatch found;
      const std::string line = drawn.nodes.at(node);
      ASSERT_TRUE(
          std::regex_search(line, found, std::regex{R"x(pos="(\d+),\d+", width=([\d.]+))x"}));
      const double middle = std::stod(found[1]), half = std::stod(found[2]) * 72 / 2;
      EXPECT_GE(middle - half, ends.first) << line;
      EXPECT_LE(middle + half, ends.second) << line;
      if (node != "check") {
        EXPECT_EQ(trace.events[std::stoul(node.substr(1)) - 1].thread, thread) << line;
      }
    }
  }
}

void expect_complete(const Trace& trace, const std::string& dot) {
  const Drawn drawn = parse(dot);
  EXPECT_EQ(drawn.red(), red_of(trace));
  EXPECT_EQ(drawn.nodes.size(), trace.events.size() + (trace.race.empty() ? 1 : 0));
  expect_threads_from_left_to_right(trace, drawn);
  EXPECT_THAT(dot, AllOf(HasSubstr("= reads, := writes"), HasSubstr(">rf: reads from<"),
                         HasSubstr(">co: modification order<"), HasSubstr(">red: what is violated"),
                         HasSubstr("\"red\">" + trace.cause.what)));
  std::vector<std::pair<std::string, std::string>> arrows;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    for (const std::size_t from : {event.reads_from.value_or(0), event.after.value_or(0)}) {
      if (from != 0) arrows.emplace_back(name(from), name(i + 1));
    }
    if (event.reads_from == 0) {
      EXPECT_THAT(drawn.nodes.at(name(i + 1)),
                  HasSubstr(event.written ? " rf initial" : " (initial)"));
    }
  }
  if (!trace.race.empty()) arrows.emplace_back(name(trace.race[0]), name(trace.race[1]));
  EXPECT_EQ(drawn.arrows, arrows);
}

// Of the catalogue, in both forms.
void for_each_violation(const std::function<void(const std::string&, const Trace&)>& each) {
  for (const Entry& entry : catalogue()) {
    std::vector<std::string> mutants{""};
    for (const Mutant& mutant : entry.mutants) mutants.push_back(mutant.name);
    for (const std::string& mutant : mutants) {
      const Size size = (mutant.empty() ? entry.size : entry.mutant_size).value_or(Size{});
      for (const Form form : {Form::A, Form::B}) {
        if (!entry.has_forms && form == Form::B) continue;
        for (const Case& one : entry.cases(size, form, mutant)) {
          const Result result = explore(one.program);
          if (!result.violation) continue;
          each(entry.name + " " + mutant + " " + one.label, *result.violation);
        }
      }
    }
  }
}

TEST(TraceDot, ShowsWhatIsViolatedInEveryProgramAndMutant) {
  std::set<std::string> causes;
  for_each_violation([&](const std::string& subject, const Trace& trace) {
    SCOPED_TRACE(subject);
    causes.insert(!trace.race.empty() ? "race" : trace.at_end ? "at the end" : "check");
    const std::string dot = trace_dot(trace, subject);
    EXPECT_THAT(dot, HasSubstr("\"black\">" + subject + "<"));
    expect_complete(trace, dot);
  });
  EXPECT_EQ(causes, (std::set<std::string>{"race", "at the end", "check"}));
}

Trace violation_of(const Program& program) {
  return explore_for_shortest(program).violation.value();
}

TEST(TraceDot, HasAColumnForEachOfThreeThreads) {
  Program program;
  const Var x = program.var("x");
  const Var y = program.var("y");
  program.thread_names = {"writer", "relay", "reader"};
  program.threads.emplace_back([=] { x.store(1, kRelaxed); });
  program.threads.emplace_back([=] {
    if (x.load(kRelaxed) == 1) y.store(1, kRelaxed);
  });
  program.threads.emplace_back([=] {
    if (y.load(kRelaxed) == 1) check(x.load(kRelaxed) == 1, "causality");
  });
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "causality");
  expect_complete(trace, dot);
  EXPECT_EQ(parse(dot).threads.size(), 3u);
  EXPECT_THAT(dot, HasSubstr("causality, by reader [trace_test.cc:"));
}

TEST(TraceDot, HasAnUpdateThatReadsTheInitialValue) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { check(x.fetch_add(2, kRelaxed) != 0, "the first one"); });
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "update");
  expect_complete(trace, dot);
  EXPECT_THAT(dot, HasSubstr("#1  x = 0x0 := 0x2 relaxed rf initial "));
}

TEST(TraceDot, HasACheckThatFailsBeforeAnythingIsDone) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(1, kRelaxed); });
  program.threads.emplace_back([] { check(false, "never"); });
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "empty");
  expect_complete(trace, dot);
  EXPECT_EQ(parse(dot).red(), std::set<std::string>{"check"});
  EXPECT_EQ(parse(dot).inside.at(1), std::set<std::string>{"check"});
}

TEST(TraceDot, HasACheckAtTheEndThatReadsNothing) {
  Program program;
  const Var x = program.var("x");
  program.threads.emplace_back([=] { x.store(1, kRelaxed); });
  program.finally = [] { check(false, "never"); };
  const Trace trace = violation_of(program);
  const std::string dot = trace_dot(trace, "empty");
  expect_complete(trace, dot);
  EXPECT_EQ(parse(dot).red(), std::set<std::string>{"check"});
  EXPECT_THAT(dot, AllOf(HasSubstr("never, at the end ["), Not(HasSubstr("by at the end"))));
}

TEST(TraceDot, NamesAreGraphvizsOwnCharacters) {
  Program program;
  const Var x = program.var("x \"y\"\\");
  program.thread_names = {"a \"b\""};
  program.threads.emplace_back([=] {
    x.store(1, kRelaxed);
    check(false, "1 < 2 && 3 > 2");
  });
  const std::string dot = trace_dot(violation_of(program), "<&>");
  EXPECT_THAT(dot, AllOf(HasSubstr(R"(x \"y\"\\ := 0x1)"), HasSubstr(R"(label="a \"b\"")"),
                         HasSubstr(">1 &lt; 2 &amp;&amp; 3 &gt; 2, by a \"b\" ["),
                         HasSubstr(">&lt;&amp;&gt;<"), HasSubstr("\"1 < 2 && 3 > 2  trace_test")));
}

}  // namespace
}  // namespace perfring::model
