// perfring, as far as it needs no live kernel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/testing.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(Perfring, HelpNamesEveryOptionAndTheExitCodes) {
  const Ended ended = run({"--help"});
  EXPECT_EQ(ended.exit_code, 0);
  for (const char* text : {"--seconds", "--cpus", "--payload", "--pages", "--watermark", "--json",
                           "--simulated", "sim", "Exit codes: 0"}) {
    EXPECT_THAT(ended.out, HasSubstr(text));
  }
}

TEST_F(Perfring, WrongArgumentsAreNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--bogus"}, "--bogus"},
      {{"extra"}, "extra"},
      {{"--seconds"}, "--seconds"},
      {{"--seconds", "0"}, "--seconds: '0'"},
      {{"--cpus", "zero"}, "online CPUs: "},
      {{"--payload", "7"}, "from 8 to 65516"},
      {{"--pages", "3"}, "a power of two"},
      {{"--watermark", "-1"}, "--watermark"},
      {{"--pages", "1", "--watermark", "2147483648"}, "exceeds the ring"},
      {{"--pages", "1", "--payload", "65516"}, "does not fit"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << message;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
    EXPECT_EQ(ended.out, "");
  }
}

TEST_F(Perfring, TheSimulatedKernelCanBeAskedFor) {
  const Ended ended =
      run({"--simulated", "--seconds", "0.7", "--json", "--pages", "1", "--payload", "8-3000"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["kernel"], "simulated");
  EXPECT_EQ(json["why"], "as asked for");
  for (const auto& cpu : json["cpus"]) {
    EXPECT_GT(cpu["delivered"], 100);
    EXPECT_GT(cpu["lost"], 0);
    EXPECT_EQ(cpu["written"],
              cpu["delivered"].get<std::uint64_t>() + cpu["lost"].get<std::uint64_t>());
  }
}

}  // namespace
}  // namespace perfring::cli
