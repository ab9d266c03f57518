#include <fmt/format.h>

#include <array>
#include <string>

#include "harness/cli/check/check.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/hardware/explorer.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/model/model_catalogue.h"

namespace perfring::cli {
namespace {

using model::Entry;
using model::ExploreOptions;
using model::find_entry;
using model::Form;
using model::MemoryModel;
using model::UsageError;

struct Row {
  const char* edge;
  const char* with;
  const char* fault;
  const char* lkmm;  // nullptr: computed by the checker
  const char* x86;
};

// The kernel has no release fence. kReleaseStore is herd7 7.58's verdict on a release store
// instead.
constexpr const char* kNoSuchFence = "";
constexpr const char* kReleaseStore = "holds (release store, by herd7)";
constexpr const char* kByTheChecker = nullptr;
// herd7 7.58's verdict on the bad outcome.
constexpr const char* kForbidden = "forbidden";
constexpr const char* kNotRequested = "";

constexpr std::array kRows = {
    Row{"A: data_tail, then the record", "control dependency, as in the kernel", "", kByTheChecker,
        kForbidden},
    Row{"", "nothing", "no_control_dependency", kByTheChecker, kNotRequested},
    Row{"B: record, then data_head", "store-store fence (smp_wmb)", "", kByTheChecker, kForbidden},
    Row{"", "release fence", "release_for_wmb", kNoSuchFence, kNotRequested},
    Row{"", "nothing", "no_smp_wmb", kByTheChecker, kNotRequested},
    Row{"C: data_head, then records", "acquire fence, as shipped (LKMM: smp_rmb)", "",
        kByTheChecker, kForbidden},
    Row{"", "nothing (a control dependency)", "no_acquire_fence", kByTheChecker, kForbidden},
    Row{"", "acquire fence before data_head is read", "acquire_fence_first", kByTheChecker,
        kForbidden},
    Row{"", "acquire fence, then data_head read again", "head_read_again", kByTheChecker,
        kForbidden},
    Row{"D: records, then data_tail", "full fence, as shipped", "", kByTheChecker, kForbidden},
    Row{"", "release fence", "release_for_full", kReleaseStore, kForbidden},
    Row{"", "acquire fence (LKMM: smp_rmb)", "acquire_for_full", kByTheChecker, kForbidden},
    Row{"", "store-store fence", "store_store_for_full", kByTheChecker, kForbidden},
    Row{"", "nothing", "no_full_fence", kByTheChecker, kForbidden},
};

bool holds(Form form, const char* fault) {
  const Entry& ring = *find_entry("ring");
  ExploreOptions options;
  options.merge = true;
  for (const model::Case& each : ring.cases(*ring.size, form, fault)) {
    const model::Result result = model::explore(each.program, options);
    if (result.violation) return false;
    if (!result.proved()) throw UsageError{"not proved: " + result.not_proved()};
  }
  return true;
}

// Under LKMM, explores the word-by-word protocol; for the processors, the source that ships.
bool holds(MemoryModel machine, const char* fault) {
  const bool kernel = machine == MemoryModel::Lkmm;
  const Entry& entry = *find_entry(kernel ? "protocol" : "ring");
  const Form form = kernel ? Form::Kernel : Form::A;
  for (const model::Case& each : entry.cases(*entry.machine_size, form, fault)) {
    const model::Result result = model::explore_machine(each.program, machine);
    if (result.violation) return false;
    if (!result.proved()) throw UsageError{"not proved: " + result.not_proved()};
  }
  return true;
}

const char* verdict(bool holds) {
  return holds ? "holds" : "fails";
}

}  // namespace

std::string fences_table() {
  std::string text =
      "| between | fence | RC11, form A | RC11, form B | in C++ | AArch64 | RISC-V | LKMM "
      "| x86 |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : kRows) {
    const bool a = holds(Form::A, row.fault);
    const bool b = holds(Form::B, row.fault);
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.edge, row.with, verdict(a),
        verdict(b), a && b ? "sufficient" : "not enough",
        verdict(holds(MemoryModel::AArch64, row.fault)),
        verdict(holds(MemoryModel::RiscV, row.fault)),
        row.lkmm != kByTheChecker ? row.lkmm : verdict(holds(MemoryModel::Lkmm, row.fault)),
        row.x86);
  }
  return text;
}

}  // namespace perfring::cli
