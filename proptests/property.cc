#include "proptests/property.h"

#include <gtest/gtest.h>
#include <rapidcheck/detail/Configuration.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <unordered_map>

namespace perfring::proptests {
namespace {

using rc::detail::FailureResult;
using rc::detail::SuccessResult;
using rc::detail::TestParams;
using rc::detail::TestResult;

rc::detail::TestMetadata current_test() {
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string id = std::string{info->test_suite_name()} + "." + info->name();
  return {id, id};
}

std::string_view environment(const char* variable, std::string_view otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

TestResult search(const rc::detail::Property& property, const TestParams& params,
                  const std::unordered_map<std::string, rc::detail::Reproduce>& reproduce) {
  struct Quiet final : rc::detail::TestListener {
    void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
    void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
    void onTestFinished(const rc::detail::TestMetadata&, const TestResult&) override {}
  } quiet;
  return rc::detail::checkProperty(property, current_test(), params, quiet, reproduce);
}

// The line to type, in Bazel's terms.
std::string replay_line(const FailureResult& failure, const std::string& id) {
  rc::detail::Configuration configuration = rc::detail::configuration();
  configuration.reproduce = {{id, failure.reproduce}};
  std::ostringstream line;
  line << "bazel test " << environment("TEST_TARGET", "//proptests/...") << " --test_filter=" << id
       << " --test_env=RC_PARAMS='" << rc::detail::configToString(configuration) << "'";
  return line.str();
}

std::string in_words(const TestResult& result) {
  std::ostringstream words;
  printResultMessage(result, words);
  return words.str();
}

}  // namespace

void expect_always(const rc::detail::Property& property, int times) {
  TestParams params = rc::detail::configuration().testParams;
  if (environment("RC_PARAMS", "").find("max_success") == std::string_view::npos) {
    params.maxSuccess = times;
  }
  const TestResult result = search(property, params, rc::detail::configuration().reproduce);
  FailureResult failure;
  if (result.match(failure)) {
    ADD_FAILURE() << in_words(result) << "\n\nReplay it:\n  "
                  << replay_line(failure, current_test().id);
  } else {
    EXPECT_TRUE(result.is<SuccessResult>()) << in_words(result);
  }
}

std::optional<std::string> fault_found(const rc::detail::Property& property) {
  TestParams params;
  params.seed = 1;
  params.maxSuccess = 2000;
  const TestResult result = search(property, params, {});
  if (!result.is<FailureResult>()) return std::nullopt;
  const std::string words = in_words(result);
  std::printf("%s\n\n", words.c_str());
  return words;
}

}  // namespace perfring::proptests
