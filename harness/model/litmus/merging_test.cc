// merging.json: for each thing by which the engine tells two states apart (engine/state_key.h), a
// program that loses an outcome or a race if it is left out of the key. (A thread's step and the
// number of stores kept follow from the rest.) What the programs allow is the reference's answer,
// which has no states.

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "harness/model/litmus/litmus.h"
#include "harness/model/reference/enumerate.h"

namespace perfring::model {
namespace {

std::vector<Litmus> programs() {
  std::ifstream file{"harness/model/litmus/merging.json"};
  return read_litmus(file);
}

TEST(FutureKeyTest, WhatDistinguishesTwoStatesIsNotMergedAway) {
  std::set<std::string> names;
  for (const Litmus& litmus : programs()) {
    SCOPED_TRACE(litmus.text.name);
    names.insert(litmus.text.name);
    for (const bool merge : {true, false}) {
      ExploreOptions options;
      options.merge = merge;
      const LitmusVerdict verdict = run_litmus(litmus, options);
      EXPECT_TRUE(verdict.compared);
      for (const std::string& difference : verdict.differences) ADD_FAILURE() << difference;
    }
  }
  EXPECT_EQ(names.size(), 15u);
}

TEST(FutureKeyTest, TheFileSaysWhatTheAxiomsDo) {
  for (const Litmus& litmus : programs()) {
    SCOPED_TRACE(litmus.text.name);
    const reference::Answer answer = reference::enumerate(litmus.text, MemoryModel::Rc11);
    EXPECT_EQ(answer.race, litmus.race);
    if (!litmus.race) {
      EXPECT_EQ(answer.outcomes, litmus.expected.at(MemoryModel::Rc11).allowed);
    }
  }
}

}  // namespace
}  // namespace perfring::model
