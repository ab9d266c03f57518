// flows NAME [ARGUMENT...]: runs one flow of the library. Prints its account or its error, and
// everything that it leaves in addition to what was there before. `flows` alone prints the names.
//
// Exit codes: 0 with an account, 2 with an error, 3 if this machine or this user cannot run the
// flow.

#include "harness/anomaly/flows.h"

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "harness/anomaly/mark.h"
#include "harness/program/console.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"

namespace perfring::anomaly {
namespace {

void mark(bool begins) {
  ::prctl(ANOMALY_MARK, begins ? 1UL : 0UL, 0UL, 0UL, 0UL);
}

// Lists the resources of this process: descriptors, shared mappings, children.
std::vector<std::string> open_resources() {
  std::vector<std::string> all;
  for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(each.path(), gone);
    if (target.find("/fd") == target.npos)
      all.push_back("fd " + each.path().filename().string() + " " + target);
  }
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    // "FIRST-LAST rw-s OFFSET ...": a shared mapping, such as a ring.
    if (line.find("s ", line.find(' ')) == line.find(' ') + 4) all.push_back("mapping " + line);
  }
  // The list includes zombies.
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream children{task.path() / "children"};
    for (pid_t child = 0; children >> child;) all.push_back("child " + std::to_string(child));
  }
  std::ranges::sort(all);
  return all;
}

const Flow* flow_of(const std::string& name) {
  for (const auto all : {ring_flows(), event_flows(), planted_flows()}) {
    for (const Flow& each : all) {
      if (each.name == name) return &each;
    }
  }
  return nullptr;
}

FlowResult run(const Prepared& prepared) {
  mark(true);
  try {
    FlowResult result = prepared.run();
    mark(false);
    return result;
  } catch (const std::bad_alloc&) {
    mark(false);
    return std::unexpected("std::bad_alloc: Cannot allocate memory");
  }
}

int run_flow(int argc, char** argv) {
  if (argc < 2) {
    for (const auto all : {ring_flows(), event_flows(), planted_flows()}) {
      for (const Flow& each : all) std::puts(each.name);
    }
    return kHolds;
  }
  // An exception out of noexcept code must show: run_program() would end the program in good order.
  std::set_terminate(std::abort);
  const Flow* const flow = flow_of(argv[1]);
  if (flow == nullptr) return fail(std::string{"no flow: "} + argv[1]);
  const std::vector<std::string> arguments{argv + 2, argv + argc};
  Prepared prepared;
  try {
    prepared = flow->prepare(arguments);
  } catch (const std::exception& error) {
    fail(std::string{"cannot run here: "} + error.what());
    return kNotShown;
  }
  const std::vector<std::string> before = open_resources();
  const FlowResult result = run(prepared);
  std::vector<std::string> left;
  std::ranges::set_difference(open_resources(), before, std::back_inserter(left));
  if (const std::string elsewhere = prepared.left(); !elsewhere.empty()) left.push_back(elsewhere);
  for (const std::string& each : left) std::printf("left: %s\n", one_line(each).c_str());
  if (!result) return fail(one_line(result.error()));
  std::printf("account: %llu = %llu + %llu\n", static_cast<unsigned long long>(result->attempted),
              static_cast<unsigned long long>(result->delivered),
              static_cast<unsigned long long>(result->lost));
  return kHolds;
}

}  // namespace

Outside::Outside() {
  mark(false);
}
Outside::~Outside() {
  mark(true);
}

}  // namespace perfring::anomaly

int main(int argc, char** argv) {
  return perfring::run_program("flows", perfring::anomaly::run_flow, argc, argv);
}
