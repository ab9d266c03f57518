#include "proptests/property.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace perfring::proptests {
namespace {

using rc::detail::Configuration;
using rc::detail::FailureResult;
using rc::detail::SuccessResult;
using rc::detail::TestResult;

std::string current_test() {
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string{info->test_suite_name()} + "." + info->name();
}

std::string_view environment(const char* variable, std::string_view otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

TestResult check(const Property& property, const Configuration& configuration) {
  struct Quiet final : rc::detail::TestListener {
    void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
    void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
    void onTestFinished(const rc::detail::TestMetadata&, const TestResult&) override {}
  } quiet;
  return rc::detail::checkProperty(rc::detail::toProperty(property),
                                   {current_test(), current_test()}, configuration.testParams,
                                   quiet, configuration.reproduce);
}

// Returns the Bazel command that replays the failure.
std::string replay_line(const FailureResult& failure) {
  Configuration configuration = rc::detail::configuration();
  configuration.reproduce = {{current_test(), failure.reproduce}};
  std::ostringstream line;
  line << "bazel test " << environment("TEST_TARGET", "//proptests/...")
       << " --test_filter=" << current_test() << " --test_env=RC_PARAMS='"
       << rc::detail::configToMinimalString(configuration) << "'";
  return line.str();
}

// Returns the invariant that a line of the failure's description names. The description of a failed
// assertion or RC_FAIL begins with its place in the source. An exception's description is ignored,
// whatever its text.
std::optional<Invariant> violated_in(const FailureResult& failure) {
  if (failure.description.starts_with("Exception thrown")) return std::nullopt;
  std::istringstream lines{failure.description};
  for (std::string line; std::getline(lines, line);) {
    for (const Invariant each : oracle::invariants()) {
      if (line.starts_with(to_string(oracle::Violation{each, ""}))) return each;
    }
  }
  return std::nullopt;
}

std::string in_words(const TestResult& result) {
  std::ostringstream words;
  printResultMessage(result, words);
  return words.str();
}

}  // namespace

void always(const Property& property, int times) {
  Configuration configuration = rc::detail::configuration();
  if (environment("RC_PARAMS", "").find("max_success") == std::string_view::npos) {
    configuration.testParams.maxSuccess = times;
  }
  const TestResult result = check(property, configuration);
  FailureResult failure;
  if (result.match(failure)) {
    ADD_FAILURE() << in_words(result) << "\n\nReplay it:\n  " << replay_line(failure);
  } else {
    EXPECT_TRUE(result.is<SuccessResult>()) << in_words(result);
  }
}

std::optional<std::string> search(const Property& property, const Configuration& configuration) {
  const TestResult result = check(property, configuration);
  if (!result.is<FailureResult>()) return std::nullopt;
  const std::string words = in_words(result);
  std::printf("%s\n\n", words.c_str());
  return words;
}

void fail(const oracle::Violation& violation) {
  RC_FAIL(to_string(violation));
}

std::optional<std::string> counterexample(const Property& property, Invariant violated,
                                          bool shrunk) {
  Configuration configuration;
  configuration.testParams.seed = 1;
  configuration.testParams.maxSuccess = 10000;
  configuration.testParams.disableShrinking = !shrunk;
  const TestResult result = check(property, configuration);
  FailureResult failure;
  if (!result.match(failure)) return std::nullopt;
  std::string words = in_words(result);
  std::printf("%s\n\n", words.c_str());
  if (violated_in(failure) == violated) return words;
  std::printf("That does not violate %s.\n\n", to_string(violated));
  return std::nullopt;
}

}  // namespace perfring::proptests
