// Runs the parts of `perfring` that need no live kernel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/cli_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/json.h"
#include "perfring/version.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAreArray;

using ProgramTest = PerfringTest;

TEST_F(ProgramTest, HelpNamesEveryOption) {
  const ProcessResult ended = run({"--help"});
  EXPECT_EQ(ended.exit_code, 0);
  for (const char* text : {"--seconds", "--cpus", "--payload", "--pages", "--watermark", "--json",
                           "--simulated", "sim", "Exit codes: 0"}) {
    EXPECT_THAT(ended.out, HasSubstr(text));
  }
}

// Parsed by Python, not by the library that wrote it.
TEST_F(ProgramTest, JsonOfEventsIsAnObjectALine) {
  constexpr const char* kRead =
      "import json, sys\n"
      "for line in sys.stdin: print(' '.join(sorted(json.loads(line))))\n";
  const ProcessResult ended =
      shell(std::string{"\"$PERFRING\" events 'c*' --json | python3 -c \""} + kRead + "\"");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const auto lines = lines_of(ended.out);
  EXPECT_GE(lines.size(), 10U);
  for (const std::string& line : lines) EXPECT_EQ(line, "event opens why_not");
}

TEST_F(ProgramTest, WrongArgumentsAreNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--bogus"}, "--bogus"},
      {{"extra"}, "extra"},
      {{"--seconds"}, "--seconds"},
      {{"--seconds", "0"}, "--seconds: '0'"},
      {{"--cpus", "zero"}, "--cpus: 'zero' is not accepted: give CPUs such as 0 or 0-2,5"},
      {{"--simulated", "--cpus", "65000"}, "65000 is not among the CPUs that this process may use"},
      {{"--payload", "7"}, "from 8 to 65516"},
      {{"--pages", "3"}, "a power of two"},
      {{"--watermark", "-1"}, "--watermark"},
      {{"--pages", "1", "--watermark", "2147483648"}, "exceeds the ring"},
      {{"--pages", "1", "--payload", "65516"}, "does not fit"},
      {{"--order", "size"}, "--order"},
      {{"--order"}, "--order"},
      {{"--simulated", "--order", "time"}, "--order: cannot be combined with --simulated"},
      {{"--simulated", "--order", "fullest"}, "--order: cannot be combined with --simulated"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << message;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
    EXPECT_EQ(ended.out, "");
  }
}

// Returns the commands in the subcommands part of --help: the first word of each line that is
// indented by two blanks. CLI11 writes the part's title in capitals since 2.5.
std::vector<std::string> commands_of(const std::string& help) {
  const std::size_t capitals = help.find("\nSUBCOMMANDS:\n");
  const std::size_t begin = capitals == help.npos ? help.find("\nSubcommands:\n") : capitals;
  if (begin == help.npos) return {};
  std::istringstream lines{help.substr(begin + 1)};
  std::vector<std::string> commands;
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line) && !line.empty();) {
    if (line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

TEST_F(ProgramTest, DrainsEachSimulatedRingByItself) {
  const ProcessResult ended = run({"--simulated", "--order", "each", "--seconds", "0.2", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(parsed(ended.out)["holds"], true);
}

TEST_F(ProgramTest, EveryCommandPrintsHelpOrVersion) {
  std::vector<std::string> commands = commands_of(run({"--help"}).out);
  EXPECT_THAT(commands, IsSupersetOf({"sim", "check", "record", "inspect"}));
  commands.emplace_back();
  for (const std::string& command : commands) {
    const ProcessResult help = run_line(command + " --help");
    EXPECT_EQ(help.exit_code, 0);
    const std::string usage = "perfring" + (command.empty() ? "" : " " + command) + " [";
    EXPECT_THAT(help.out, AllOf(HasSubstr(usage), HasSubstr("3 not shown"))) << command;
    const ProcessResult version = run_line(command + " --version");
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_EQ(version.out, std::string{"perfring "} + PERFRING_VERSION + "\n");
  }
}

// Returns the rest of each line that begins with `before`, in one section of the manual page.
std::vector<std::string> named(const std::string& page, const std::string& part,
                               const std::string& before) {
  const std::size_t begin = page.find(".SH " + part + "\n");
  std::istringstream lines{
      page.substr(std::min(begin, page.size()), page.find("\n.SH", begin) - begin)};
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(before)) names.push_back(line.substr(before.size()));
  }
  return names;
}

TEST_F(ProgramTest, ManualPageMatchesHelp) {
  const char* const path = std::getenv("PERFRING_MANUAL");
  ASSERT_NE(path, nullptr);
  const std::string page = contents(path);
  const std::string help = run({"--help"}).out;
  EXPECT_THAT(named(page, "COMMANDS", ".B "), UnorderedElementsAreArray(commands_of(help)));
  for (const std::string code : {"0 ", "1 ", "2 ", "3 "}) {
    EXPECT_THAT(page.substr(page.find(".SH EXIT STATUS")), HasSubstr(code));
    EXPECT_THAT(help.substr(help.find("Exit codes:")), HasSubstr(code));
  }
}

TEST_F(ProgramTest, ASimulatedRunThatDeliversNothingShowsNothing) {
  const ProcessResult ended = run({"--simulated", "--seconds", "1e-9", "--json"});
  const auto json = parsed(ended.out);
  if (json["cpus"].at(0)["delivered"] != 0) GTEST_SKIP() << "its threads were faster than that";
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(json["holds"], false);
}

TEST_F(ProgramTest, TheSimulatedKernelCanBeRequested) {
  const ProcessResult ended =
      run({"--simulated", "--seconds", "0.7", "--json", "--pages", "1", "--payload", "8-3000"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const auto json = parsed(ended.out);
  EXPECT_EQ(json["kernel"], "simulated");
  EXPECT_EQ(json["simulated_because"], "requested with --simulated");
  for (const auto& cpu : json["cpus"]) {
    EXPECT_GT(cpu["delivered"], 100);
    EXPECT_GT(cpu["lost"], 0);
    EXPECT_EQ(cpu["attempted"],
              cpu["delivered"].get<std::uint64_t>() + cpu["lost"].get<std::uint64_t>());
  }
}

TEST(DiffOptionsTest, WrongOptionsAreNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--scripts 0", "--scripts: '0' is not accepted: give a number from 1 to 1000000000"},
      {"--scripts -1", "--scripts: '-1' is not accepted"},
      {"--scripts many", "--scripts: 'many' is not accepted"},
      {"--seed 18446744073709551616", "--seed: '18446744073709551616' is not accepted"},
      {"--steps 0", "--steps: '0' is not accepted"},
      {"--cpu ''", "--cpu: '' is not accepted"},
      {"--cpu -1", "--cpu: '-1' is not accepted"},
      {"--record ''", "--record: '' is not accepted"},
      {"--record -", "--record: - takes only one trace: give --script"},
      {"--replay x --seed 2", "--seed: cannot be given together with --replay"},
      {"--replay x --script y", "--replay: cannot be given together with --script or --record"},
      {"--script x --steps 2", "--steps: cannot be given together with --script"},
      {"--script /nowhere", "--script: '/nowhere' cannot be read: No such file"},
      {"--script /dev/zero", "--script: '/dev/zero' is larger than 4 MiB"},
      {"--script /dev/null", "--script: '/dev/null' is empty"},
      {"--script /", "--script: '/' cannot be read: Is a directory"},
      {"--script " + temporary("binary", std::string{"output 1\0", 9}), "byte 8 is 0"},
      {"--script " + temporary("comment", "# output 1\n"), "has no step: give at least one"},
      {"--script " + temporary("wrong", "output 1\npages 3\n"),
       "wrong': line 2: a ring of 3 pages"},
      {"--replay " + temporary("no_trace", "output 1\n"), "--replay: '"},
      {"--nonsense", "'--nonsense' is not an option here"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult ended = run_line("diff " + arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("perfring: "), HasSubstr(message))) << arguments;
  }
}

}  // namespace
}  // namespace perfring::cli
