#include "harness/program/child_process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <system_error>

namespace perfring {
namespace {

Ended shell(const std::string& line, const std::string& in = {}) {
  return run_child({"/bin/sh", "-c", line}, in);
}

TEST(ChildProcessTest, BothOutputsAndTheExitCodeAreCollected) {
  const Ended ended = shell("echo to out; echo to err >&2; exit 7");
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_EQ(ended.out, "to out\n");
  EXPECT_EQ(ended.err, "to err\n");
}

TEST(ChildProcessTest, OutputBeyondAPipesCapacityIsCollected) {
  const Ended ended = shell("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out.size(), 300000u);
  EXPECT_EQ(ended.err.size(), 300000u);
}

TEST(ChildProcessTest, ArgumentsReachTheChildAsTheyAre) {
  EXPECT_EQ(run_child({"/usr/bin/env", "printf", "%s|", "two words", "", "$HOME"}).out,
            "two words||$HOME|");
}

TEST(ChildProcessTest, TheChildReadsItsInputToTheEnd) {
  const std::string in(100000, 'x');
  EXPECT_EQ(run_child({"/usr/bin/env", "cat"}, in).out, in);
}

TEST(ChildProcessTest, ASignalThatEndsTheChildIsItsExitCode) {
  EXPECT_EQ(shell("kill -TERM $$").exit_code, 128 + SIGTERM);
}

TEST(ChildProcessTest, AProgramThatDoesNotExistThrowsAndOneThatIsNotInPathIs127) {
  EXPECT_THROW(run_child({"/nowhere/program"}), std::system_error);
  EXPECT_EQ(run_child({"/usr/bin/env", "no-such-program"}).exit_code, 127);
}

TEST(ChildProcessTest, AChildThatIsGivenUpIsKilledAndLeavesItsOutput) {
  ChildProcess child{{"/bin/sh", "-c", "echo begun >&2; exec sleep 600"}};
  const Ended ended = child.wait([&] { return !child.errors().empty(); });
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_EQ(ended.err, "begun\n");
}

TEST(ChildProcessTest, AChildThatIsNotWaitedForIsKilled) {
  pid_t id = 0;
  {
    const ChildProcess child{{"/usr/bin/env", "sleep", "600"}};
    id = child.id();
    EXPECT_EQ(::kill(id, 0), 0);
  }
  EXPECT_NE(::kill(id, 0), 0);
}

}  // namespace
}  // namespace perfring
