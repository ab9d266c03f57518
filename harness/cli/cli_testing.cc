#include "harness/cli/cli_testing.h"

#include <signal.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <sstream>
#include <stdexcept>

#include "harness/program/json.h"
#include "harness/program/privileges.h"
#include "harness/program/read_file.h"
#include "harness/program/sanitizers.h"
#include "perfring/os/cpus.h"

namespace perfring::cli {

ProcessResult run_line(const std::string& arguments, const std::string& before) {
  const char* const binary = std::getenv("PERFRING_BINARY");
  if (binary == nullptr) return {-1, "PERFRING_BINARY is not set", ""};
  const std::string command =
      "{ " + before + " $PERFRING_RUN_UNDER " + binary + " " + arguments + "; } 2>&1";
  return run_child({"/bin/sh", "-c", command});
}

ProcessResult run_line_until(const std::string& signal, const std::string& arguments) {
  ProcessResult ended{};
  for (const char* const seconds : {"0.3", "2", "10", "30"}) {
    ended = run_line(arguments, "timeout --preserve-status -s " + signal + " " + seconds);
    if (ended.exit_code < 128) break;
  }
  return ended;
}

Json parsed(const std::string& text) {
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw std::runtime_error{"not JSON: " + text};
  return json;
}

std::string temporary(const std::string& name, const std::string& contents) {
  const std::string path = ::testing::TempDir() + "/" + name;
  if (!contents.empty()) std::ofstream{path, std::ios::binary} << contents;
  return path;
}

std::string contents(const std::filesystem::path& path) {
  return read_file(path).value_or(std::string{});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string file_of(const char* variable, const std::string& suffix) {
  std::stringstream files{environment_variable(variable)};
  for (std::string file; files >> file;) {
    if (file.ends_with(suffix)) return file;
  }
  return {};
}

bool is_installed(const std::string& program) {
  return run_child({"/bin/sh", "-c", "command -v " + program}).exit_code == 0;
}

std::string compiled(const std::string& compiler, const std::string& source) {
  const std::string to = temporary("adapter" + source.substr(source.rfind('.')));
  const std::string line = compiler + " " + to + " " + source;
  const ProcessResult ended = run_child({"/bin/sh", "-c", line});
  EXPECT_EQ(ended.exit_code, 0) << line << "\n" << ended.err;
  return to;
}

void PerfringTest::SetUp() {
  // The default actions, as from a shell: nohup, for example, may have started this test.
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) std::signal(each, SIG_DFL);
  const char* const binary = std::getenv("PERFRING_BINARY");
  ASSERT_NE(binary, nullptr);
  program_ = folder_.path() / "perfring";
  std::filesystem::path copy = program_;
  // A program for another processor (harness/foreign/run): `perfring` is a script that emulates it.
  if (const char* const emulator = std::getenv("PERFRING_RUN_UNDER")) {
    std::ofstream{program_} << "#!/bin/sh\nexec " << emulator << " \"$0.program\" \"$@\"\n";
    std::filesystem::permissions(program_, std::filesystem::perms{0755});
    copy += ".program";
  }
  std::filesystem::copy_file(binary, copy);
  std::filesystem::permissions(copy, std::filesystem::perms{0755});
}

std::vector<std::string> PerfringTest::command(const std::vector<std::string>& arguments,
                                               std::vector<std::string> before) const {
  before.push_back(program_);
  before.insert(before.end(), arguments.begin(), arguments.end());
  return before;
}

ProcessResult PerfringTest::interrupt_when_created(const std::vector<std::string>& arguments,
                                                   const std::string& file, int signal) {
  ChildProcess child{command(arguments)};
  bool sent = false;
  return child.wait([&] {
    if (!sent && std::filesystem::exists(file)) child.signal(signal), sent = true;
    return false;
  });
}

std::string why_not_supervised() {
#ifndef __x86_64__
  return "the supervisor supports only x86-64";
#endif
  if (kSanitized) return "a sanitizer makes system calls of its own";
  if (is_perf_event_open_filtered()) return "a seccomp filter refuses perf_event_open";
  return "";
}

std::string why_not_recorded() {
  if (!is_root()) return "it needs root";
  if (is_perf_event_open_filtered()) return "a seccomp filter refuses perf_event_open";
  if (!os::online_cpus()) return "sysfs, which lists the online CPUs, is not mounted";
  return "";
}

void SupervisedTest::SetUp() {
  PerfringTest::SetUp();
  if (const std::string why = why_not_supervised(); !why.empty()) GTEST_SKIP() << why;
}

std::string SupervisedTest::subject(const char* variable) {
  return std::filesystem::absolute(environment_variable(variable)).string();
}

}  // namespace perfring::cli
