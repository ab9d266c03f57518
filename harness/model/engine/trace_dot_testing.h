#ifndef HARNESS_MODEL_ENGINE_TRACE_DOT_TESTING_H_
#define HARNESS_MODEL_ENGINE_TRACE_DOT_TESTING_H_

// For tests of trace_dot(): parses its text, and compares it with the trace that it draws.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/engine/trace.h"

namespace perfring::model {

// A drawing, read back from its text.
struct Drawn {
  std::map<std::string, std::string> nodes;                 // each node's line, by name
  std::vector<std::pair<std::string, std::string>> arrows;  // without program order
  std::map<std::size_t, std::pair<int, int>> threads;       // left and right ends
  std::map<std::size_t, std::set<std::string>> inside;      // each thread's nodes

  std::set<std::string> red() const {
    std::set<std::string> names;
    for (const auto& [name, line] : nodes) {
      if (line.find(" color=red,") != std::string::npos) names.insert(name);
    }
    return names;
  }
};

inline Drawn parse(const std::string& dot) {
  static const std::regex cluster{R"(  subgraph cluster_(\d+) \{)"};
  static const std::regex ends{R"x(    bb="(\d+),0,(\d+),\d+")x"};
  static const std::regex node{R"(    (\w+) \[label=.*)"};
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

inline std::string node_name(std::size_t number) {
  return "e" + std::to_string(number);
}

inline std::set<std::string> red_of(const Trace& trace) {
  if (!trace.race.empty()) return {node_name(trace.race[0]), node_name(trace.race[1])};
  std::set<std::string> red{"check"};
  if (trace.overtakes()) {  // the violated event need not be the thread's last
    for (const std::size_t number : trace.violated) red.insert(node_name(number));
    return red;
  }
  std::size_t last = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].thread == trace.cause.thread) last = i + 1;
  }
  if (last != 0) red.insert(node_name(last));
  return red;
}

inline void expect_threads_from_left_to_right(const Trace& trace, const Drawn& drawn) {
  static const std::regex place{R"x(pos="(\d+),\d+", width=([\d.]+))x"};
  int right = -1;
  for (const auto& [thread, ends] : drawn.threads) {
    EXPECT_GT(ends.first, right);
    right = ends.second;
    for (const std::string& node : drawn.inside.at(thread)) {
      std::smatch found;
      const std::string line = drawn.nodes.at(node);
      ASSERT_TRUE(std::regex_search(line, found, place));
      const double middle = std::stod(found[1]), half = std::stod(found[2]) * 72 / 2;
      EXPECT_GE(middle - half, ends.first) << line;
      EXPECT_LE(middle + half, ends.second) << line;
      if (node != "check") {
        EXPECT_EQ(trace.events[std::stoul(node.substr(1)) - 1].thread, thread) << line;
      }
    }
  }
}

inline void expect_complete(const Trace& trace, const std::string& dot) {
  const Drawn drawn = parse(dot);
  EXPECT_EQ(drawn.red(), red_of(trace));
  EXPECT_EQ(drawn.nodes.size(), trace.events.size() + (trace.race.empty() ? 1 : 0));
  expect_threads_from_left_to_right(trace, drawn);
  EXPECT_THAT(dot,
              testing::AllOf(testing::HasSubstr("= reads, := writes"),
                             testing::HasSubstr(">rf: reads from<"),
                             testing::HasSubstr(">co: modification order<"),
                             testing::HasSubstr(trace.overtakes() ? ">downwards: memory order; "
                                                                  : ">downwards: program order<"),
                             testing::HasSubstr(">red: the violation"),
                             testing::HasSubstr("\"red\">" + trace.cause.what)));
  std::vector<std::pair<std::string, std::string>> arrows;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    for (const std::size_t from : {event.reads_from.value_or(0), event.after.value_or(0)}) {
      if (from != 0) arrows.emplace_back(node_name(from), node_name(i + 1));
    }
    if (event.reads_from == 0) {
      EXPECT_THAT(drawn.nodes.at(node_name(i + 1)),
                  testing::HasSubstr(event.written ? " rf initial" : " (initial)"));
    }
    const std::string& line = drawn.nodes.at(node_name(i + 1));
    if (event.overtakes) {
      EXPECT_THAT(line,
                  testing::HasSubstr(" overtakes #" + std::to_string(*event.overtakes) + " "));
    } else {
      EXPECT_THAT(line, testing::Not(testing::HasSubstr("overtakes")));
    }
  }
  if (!trace.race.empty()) arrows.emplace_back(node_name(trace.race[0]), node_name(trace.race[1]));
  EXPECT_EQ(drawn.arrows, arrows);
}

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_TRACE_DOT_TESTING_H_
