// Tests lib/examples/probes here, because the machine at hand may have no kprobes. All other
// examples run there (harness/live/tests/examples_test.cc).

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "harness/program/child_process.h"

namespace perfring {
namespace {

// The command is the guest's own program. Under the name `true` it opens its arguments as files.
TEST(GuestExamplesTest, ProbesCountsReturnOfEachCall) {
#if defined(__thumb__)
  GTEST_SKIP() << "32-bit ARM kernels put no uprobe on Thumb instructions";
#endif
  const ProcessResult ended = run_child({"/examples/probes", "do_sys_openat2", "/init", "main",
                                         "/bin/true", "/init", "/proc/version", "/nonexistent"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  std::smatch found;
  const std::regex line{
      "do_sys_openat2: ([0-9]+) calls, ([0-9]+) returns; main: 1 calls, ([0-9]+) returns\n"};
  ASSERT_TRUE(std::regex_match(ended.out, found, line)) << ended.out;
  EXPECT_GE(std::stoi(found[1]), 3);
  EXPECT_EQ(found[1], found[2]);
}

TEST(GuestExamplesTest, ProbesSaysWhatIsWrong) {
  const auto output_of = [](const std::string& function, const std::string& symbol) {
    return run_child({"/examples/probes", function, "/init", symbol, "/bin/true"}).out;
  };
  const std::string no_symbol = output_of("do_sys_openat2", "nope");
  EXPECT_NE(no_symbol.find("/init has no symbol nope"), std::string::npos) << no_symbol;
#if defined(__thumb__)
  const std::string thumb = output_of("do_sys_openat2", "main");
  EXPECT_NE(thumb.find("no instruction that can be probed"), std::string::npos) << thumb;
#else
  const std::string no_function = output_of("no_such_function", "main");
  EXPECT_NE(no_function.find("the kernel has no function of this name; the changes instead"),
            std::string::npos)
      << no_function;
#endif
}

}  // namespace
}  // namespace perfring
