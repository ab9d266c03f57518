// A script of any kind violates nothing; with a fault of harness/faults planted in the kernel or
// the consumer, one does. Those that take a property of their own have it in the other tests.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/faults/catalogue.h"
#include "harness/rig/faults.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

class AnyScriptTest : public ::testing::TestWithParam<faults::Fault> {};

std::vector<faults::Fault> to_be_found() {
  std::vector<faults::Fault> found;
  std::ranges::copy_if(faults::catalogue(), std::back_inserter(found), [](const auto& fault) {
    const auto* const test = std::get_if<const char*>(&fault.property);
    return test != nullptr && std::string_view{*test} == faults::kAnyScript;
  });
  return found;
}

TEST_P(AnyScriptTest, FindsTheFault) {
  const rig::ScriptFault* const planted = rig::find_planted(GetParam().name);
  ASSERT_NE(planted, nullptr);
  Mix mix = everything();
  mix.kinds.insert(mix.kinds.end(), 2, Kind::Poll);
  EXPECT_TRUE(counterexample([planted, mix] {
    const Script script = *scripts(mix);
    const auto violation = planted->run(script);
    if (!violation) return;
    RC_FAIL(fmt::format("{}: {}, by this script:\n{}", to_string(violation->invariant),
                        violation->message, to_text(script)));
  }));
}

INSTANTIATE_TEST_SUITE_P(, AnyScriptTest, ::testing::ValuesIn(to_be_found()),
                         [](const auto& named) { return std::string{named.param.name}; });

}  // namespace
}  // namespace perfring::proptests
