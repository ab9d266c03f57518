// The program as a user meets it: run as a process, with its exit code and what it prints.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "harness/live/live_kernel.h"

namespace perfring::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Ended {
  int exit_code;  // -1 if a signal ended it
  std::string out;
  std::string err;
};

// g++ defines a macro, clang has a feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||
                            __has_feature(undefined_behavior_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

struct Circumstances {
  uid_t user = 0;
  std::string out = {};  // where stdout goes, if not to be read
  rlim_t files = 0;      // that may be open; 0: as many as the test may open
};

std::string contents(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

class Perfring : public ::testing::Test {
 protected:
  // A folder that every user may read: the binary is copied there for runs as another user.
  void SetUp() override {
    std::string pattern = "/tmp/perfring_test.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::permissions(folder_, std::filesystem::perms{0755});
    const char* binary = std::getenv("PERFRING_BINARY");
    ASSERT_NE(binary, nullptr);
    std::filesystem::copy_file(binary, folder_ / "perfring");
    std::filesystem::permissions(folder_ / "perfring", std::filesystem::perms{0755});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  pid_t start(std::vector<std::string> arguments, const Circumstances& in = {}) {
    arguments.insert(arguments.begin(), folder_ / "perfring");
    return start_program(std::move(arguments), in);
  }
  // A shell's line, in which "$PERFRING" is the program.
  Ended shell(const std::string& line) {
    ::setenv("PERFRING", (folder_ / "perfring").c_str(), 1);
    return wait(start_program({"/bin/sh", "-c", line}, {}));
  }

  pid_t start_program(std::vector<std::string> arguments, const Circumstances& in) {
    const std::string out = in.out.empty() ? (folder_ / "out").string() : in.out;
    const std::string err = folder_ / "err";
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::filesystem::remove(err);  // what an earlier run said
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::dup2(::open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), STDERR_FILENO);
    const uid_t user = in.user;
    const rlimit files{in.files, in.files};
    if (in.files != 0 && ::setrlimit(RLIMIT_NOFILE, &files) != 0) ::_exit(97);
    if (user != 0 && (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0)) {
      ::_exit(98);
    }
    ::execv(argv[0], argv.data());
    ::_exit(99);
  }

  Ended wait(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(folder_ / "out"),
            contents(folder_ / "err")};
  }

  // What a child that runs has said so far.
  std::string errors() const { return contents(folder_ / "err"); }

  Ended run(const std::vector<std::string>& arguments, const Circumstances& in = {}) {
    return wait(start(arguments, in));
  }

 private:
  std::filesystem::path folder_;
};

class PerfringLive : public Perfring {
 protected:
  void SetUp() override {
    if (const auto why = live::why_no_live_kernel()) {
      if (std::getenv("PERFRING_REQUIRE_LIVE") != nullptr) FAIL() << *why;
      GTEST_SKIP() << *why;
    }
    Perfring::SetUp();
  }
};

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
      {{"--cpus", "zero"}, "online are"},
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

TEST_F(Perfring, WithoutPrivilegesItSaysWhichAreMissing) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const Ended ended = run({"--seconds", "1"}, {.user = 65534});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("no privilege for"), HasSubstr("lacks CAP_BPF and CAP_PERFMON")));
  EXPECT_EQ(ended.out, "");
}

TEST_F(Perfring, WithoutPrivilegesAndArgumentsItDrainsTheSimulatedKernel) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const Ended ended = run({}, {.user = 65534});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("The SIMULATED kernel"), HasSubstr("no privilege for"),
                               HasSubstr("All invariants hold in 5.")));
  EXPECT_THAT(ended.err, HasSubstr("events/s"));
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

TEST_F(Perfring, ASimulationIsTheSameForTheSameSeed) {
  const std::vector<std::string> arguments{"sim",    "--seed",  "5",      "--scenario",
                                           "bursts", "--steps", "200000", "--json"};
  const Ended first = run(arguments);
  EXPECT_EQ(first.exit_code, 0) << first.err << first.out;
  const auto json = nlohmann::json::parse(first.out);
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["digest"], nlohmann::json::parse(run(arguments).out)["digest"]);
  EXPECT_GT(json["cpus"].at(0)["delivered"], 0);
}

TEST_F(Perfring, AViolationReplays) {
  const Ended found = run({"sim", "--canary", "commits_each", "--json"});
  EXPECT_EQ(found.exit_code, 1) << found.err << found.out;
  const auto json = nlohmann::json::parse(found.out);
  EXPECT_EQ(json["violation"]["invariant"], "tail_honest");
  std::istringstream replay{json["shrunk"]["replay"].get<std::string>()};
  std::vector<std::string> arguments;
  for (std::string word; replay >> word;) arguments.push_back(word);
  ASSERT_EQ(arguments.at(0), "perfring");
  arguments.erase(arguments.begin());
  const Ended again = run(arguments);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.out, HasSubstr(json["shrunk"]["message"].get<std::string>()));
}

// Whatever the file is called: a shell reads the line as it was meant.
TEST_F(Perfring, AViolationReplaysInAShell) {
  const std::filesystem::path folder = ::testing::TempDir() + "/it's of $HOME";
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "two words"} << "cpus 1\nbreak_one_in 40\n";
  ::setenv("BUILD_WORKING_DIRECTORY", folder.c_str(), 1);  // as bazel run does
  for (const std::string& file : {std::string{"two words"}, (folder / "two words").string()}) {
    const Ended found = run({"sim", "--canary", "commits_each", "--json", "--scenario", file});
    ASSERT_EQ(found.exit_code, 1) << found.err << found.out;
    const auto json = nlohmann::json::parse(found.out);
    const std::string command = json["shrunk"]["replay"];
    ASSERT_TRUE(command.starts_with("perfring "));
    const Ended again = shell("\"$PERFRING\" " + command.substr(9));
    EXPECT_EQ(again.exit_code, 1) << again.err;
    EXPECT_THAT(again.out, HasSubstr(json["shrunk"]["message"].get<std::string>()));
  }
  ::unsetenv("BUILD_WORKING_DIRECTORY");
}

TEST_F(Perfring, AScenarioMayComeThroughAPipe) {
  const Ended ended =
      shell("echo 'pages 3' | \"$PERFRING\" sim --steps 1000 --scenario /dev/stdin");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("/dev/stdin, line 1: pages: 3"));
}

TEST_F(Perfring, WhatCannotBeSimulatedIsNamedWithTheReason) {
  const std::string file = ::testing::TempDir() + "/scenario.txt";
  std::ofstream{file} << "cpus 1\npages 4\nbogus 1\n";
  const std::string odd = ::testing::TempDir() + "/odd.txt";
  std::ofstream{odd} << "# of a ring\npages 3\n";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"sim", "--scenario", "none"}, "neither a file nor a scenario; there are steady"},
      {{"sim", "--scenario", std::string(300, 'x')}, "neither a file nor a scenario"},
      {{"sim", "--scenario", file}, "scenario.txt, line 3: 'bogus'"},
      {{"sim", "--scenario", odd}, "odd.txt, line 2: pages: 3 is no power of two"},
      {{"sim", "--scenario", ::testing::TempDir()}, "cannot be read: Is a directory"},
      {{"sim", "--set", "pages=3"}, "pages: 3 is no power of two"},
      {{"sim", "--set", "pages"}, "NAME=VALUE"},
      {{"sim", "--set", "payload_max=2000000"}, "payload_max: '2000000'"},
      {{"sim", "--set", "pages=1", "--set", "payload_max=5000"}, "do not fit a ring of 1 pages"},
      {{"sim", "--cpus", "65"}, "--cpus"},
      {{"sim", "--steps", "0"}, "--steps: '0' is not accepted: give a number from 1 to 1844674407"},
      {{"sim", "--steps", "-1"}, "--steps: '-1' is not accepted"},
      {{"sim", "--seed", "x"}, "--seed: 'x' is not accepted"},
      {{"sim", "--seed", "-1"}, "--seed: '-1' is not accepted: give a number from 0"},
      {{"sim", "--canary", "none"}, "there are publishes_before_writing"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << message;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("perfring: "), HasSubstr(message)));
    EXPECT_EQ(ended.out, "");
  }
}

TEST_F(Perfring, AnInterruptEndsASimulationWithTheVerdictSoFar) {
  const pid_t child = start({"sim", "--steps", "1000000000000"});
  ::usleep(700'000);
  ASSERT_EQ(::kill(child, SIGINT), 0);
  const Ended ended = wait(child);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("All invariants hold"), HasSubstr("(interrupted)")));
}

TEST_F(PerfringLive, EveryRecordOfEveryCpuIsAccountedFor) {
  const Ended ended = run({"--seconds", "1", "--json", "--payload", "8-3000"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("events/s"));
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["holds"], true);
  EXPECT_GE(json["cpus"].size(), 1U);
  for (const auto& cpu : json["cpus"]) {
    EXPECT_GT(cpu["delivered"], 1000);
    EXPECT_GT(cpu["wakeups"], 0);
    EXPECT_EQ(cpu["written"],
              cpu["delivered"].get<std::uint64_t>() + cpu["lost"].get<std::uint64_t>());
  }
}

TEST_F(PerfringLive, ASmallRingLosesMuchAndAccountsForIt) {
  const Ended ended =
      run({"--seconds", "1", "--json", "--cpus", "0", "--pages", "1", "--payload", "8-2000"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_GT(json["cpus"].at(0)["lost"], 0);
}

TEST_F(PerfringLive, AWakeupForEachRecordAndTheLargestPayloadsHoldToo) {
  const Ended each = run({"--seconds", "0.5", "--cpus", "0", "--watermark", "0"});
  EXPECT_EQ(each.exit_code, 0) << each.err << each.out;
  const Ended large = run({"--seconds", "0.5", "--payload", "60000-65516", "--pages", "64"});
  EXPECT_EQ(large.exit_code, 0) << large.err << large.out;
}

TEST_F(PerfringLive, AVerdictThatCannotBeWrittenIsAnError) {
  for (const char* form : {"--json", "--pages=256"}) {
    const Ended ended = run({"--seconds", "0.2", form}, {.out = "/dev/full"});
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.err, HasSubstr("perfring: the verdict cannot be written: No space left"));
  }
}

TEST_F(PerfringLive, TooFewDescriptorsAreSaidToBeThat) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's checks need descriptors of their own";
  int failed = 0;
  for (rlim_t files = 4; files < 64; ++files) {
    const Ended ended = run({"--seconds", "0.2"}, {.files = files});
    if (ended.exit_code == 0) break;
    // With fewer still, the program does not even start.
    if (failed == 0 && ended.err.find("the live kernel cannot") == std::string::npos) continue;
    ++failed;
    EXPECT_EQ(ended.exit_code, 2) << files;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("Too many open files"), HasSubstr("ulimit -n")))
        << files;
  }
  EXPECT_GT(failed, 3) << "none was missing";
}

TEST_F(PerfringLive, AnInterruptEndsItWithTheVerdictSoFar) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = start({"--seconds", "60"});
    // Its first line of progress; a busy machine takes its time.
    for (int tenths = 0; tenths < 300 && errors().find("events/s") == std::string::npos; ++tenths) {
      ::usleep(100'000);
    }
    ASSERT_EQ(::kill(child, signal), 0);
    const Ended ended = wait(child);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("events/s"));
    EXPECT_THAT(ended.out, AllOf(HasSubstr("(interrupted)"), HasSubstr("All invariants hold")));
  }
}

}  // namespace
}  // namespace perfring::cli
