// golden.txt keeps the traces of each program and its faults, and their traces on AArch64 and
// RISC-V, as the checker found them. Each trace follows a line `=== PROGRAM` or `=== PROGRAM
// FAULT`. `golden_test --write FILE` regenerates the file.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <string_view>

#include "harness/model/engine/explorer.h"
#include "harness/model/engine/trace.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/model_catalogue.h"

namespace perfring::model {
namespace {

constexpr std::string_view kTitle = "=== ";

// Returns the trace of the first case that is violated.
std::string trace_text(const Entry& entry, Form form, const std::string& fault,
                       const std::string& what) {
  const Size size = (fault.empty() ? entry.size : entry.fault_size).value_or(Size{});
  for (const Case& each : entry.cases(size, form, fault)) {
    const Result result = explore_for_shortest(each.program);
    if (!result.violation) continue;
    return fmt::format("{}\n{}{}{}", what,
                       entry.has_forms ? (form == Form::A ? "form A" : "form B") : "",
                       each.label.empty() ? "\n" : ", " + each.label + "\n",
                       trace_table(*result.violation, false));
  }
  return what + "\nis not violated\n";
}

// Faults that each remove an ordering edge; AArch64 and RISC-V break the ring without it.
constexpr std::array kMachineFaults = {
    "no_control_dependency", "no_smp_wmb",    "no_acquire_fence",     "acquire_fence_first",
    "head_read_again",       "no_full_fence", "store_store_for_full", "commits_each_unfenced"};

// The length of a record, in units of 8 bytes. The second of two such records, with a drain between
// them, overwrites the beginning of the first.
constexpr unsigned kMostOfTheRing = 5;

// Returns the trace in the order in which memory sees its events.
std::string machine_trace_text(const Entry& entry, const std::string& fault, MemoryModel machine) {
  MachineOptions options;
  options.all = true;
  for (const Case& each : entry.cases({2, 1, {kMostOfTheRing}}, Form::A, fault)) {
    const Result result = explore_machine(each.program, machine, options);
    if (result.violation) return trace_table(*result.violation, false);
  }
  return "is not violated\n";
}

// Returns the shortest violation found of each program and fault that is expected to fail, in the
// first form that fails. The traces leave out line numbers, so that the source can be edited.
std::map<std::string, std::string> golden_traces() {
  std::map<std::string, std::string> all;
  for (const Entry& entry : catalogue()) {
    if (entry.fails_in_a || entry.fails_in_b) {
      const Form form = entry.fails_in_a ? Form::A : Form::B;
      all[entry.name] = trace_text(entry, form, "", entry.what);
    }
    for (const ProgramFault& fault : entry.faults) {
      if (fault.shared || fault.in_any_order) continue;
      if (!fault.fails_in_a && !fault.fails_in_b) continue;
      const Form form = fault.fails_in_a ? Form::A : Form::B;
      all[entry.name + " " + fault.name] = trace_text(entry, form, fault.name, fault.what);
    }
  }
  const Entry& ring = *find_entry("ring");
  for (const char* const fault : kMachineFaults) {
    const std::string trace = machine_trace_text(ring, fault, MemoryModel::AArch64);
    const std::string other = machine_trace_text(ring, fault, MemoryModel::RiscV);
    const std::string what = ring.find_fault(fault)->what + "\n";
    all[fmt::format("ring {} on AArch64", fault)] = what + trace;
    all[fmt::format("ring {} on RISC-V", fault)] =
        what + (other == trace ? "as on AArch64\n" : other);
  }
  return all;
}

std::map<std::string, std::string> kept_traces() {
  std::map<std::string, std::string> traces;
  std::string* trace = nullptr;
  std::ifstream file{"harness/model/golden.txt"};
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kTitle)) {
      trace = &traces[line.substr(kTitle.size())];
    } else if (trace != nullptr) {
      *trace += line + "\n";
    }
  }
  return traces;
}

// The traces come from a little-endian machine. On a big-endian one, a word with smaller numbers in
// it (header, u32 size) has another value, and a column may have another width.
std::string comparable(const std::string& text) {
  if (std::endian::native == std::endian::little) return text;
  return std::regex_replace(text, std::regex{"0x[0-9a-f]+| +"}, " ");
}

TEST(GoldenTest, TracesMatchGoldenFile) {
  auto kept = kept_traces();
  for (const auto& [name, text] : golden_traces()) {
    EXPECT_EQ(comparable(kept[name]), comparable(text)) << name;
    kept.erase(name);
  }
  for (const auto& [name, text] : kept) ADD_FAILURE() << name << " is not a trace";
}

void write(const char* path) {
  std::ofstream file{path};
  for (const auto& [name, text] : golden_traces()) file << kTitle << name << "\n" << text;
}

}  // namespace
}  // namespace perfring::model

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string_view{argv[1]} == "--write") {
    perfring::model::write(argv[2]);
    return 0;
  }
  return RUN_ALL_TESTS();
}
