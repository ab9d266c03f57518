#include "harness/model/fences.h"

#include <fmt/format.h>

#include <array>

#include "harness/model/catalogue.h"
#include "harness/model/engine/explorer.h"

namespace perfring::model {
namespace {

// herd7: whether the bad outcome is allowed.
constexpr const char* kForbidden = "forbidden";
constexpr const char* kAllowed = "allowed";
constexpr const char* kNotAsked = "";

struct Row {
  const char* edge;
  const char* with;
  const char* fault;
  const char *lkmm, *aarch64, *riscv, *x86;
};

constexpr std::array kRows = {
    Row{"B: record, then data_head", "store-store fence (smp_wmb)", "", kForbidden, kForbidden,
        kForbidden, kForbidden},
    Row{"", "release fence", "release_for_wmb", kNotAsked, kNotAsked, kNotAsked, kNotAsked},
    Row{"", "nothing", "no_smp_wmb", kNotAsked, kNotAsked, kNotAsked, kNotAsked},
    Row{"C: data_head, then records", "acquire fence, as shipped", "", kForbidden,
        "forbidden (dmb ishld)", "forbidden (fence r,rw)", kForbidden},
    Row{"", "nothing (a control dependency)", "no_acquire_fence", kAllowed, kAllowed, kAllowed,
        kForbidden},
    Row{"", "acquire fence before data_head is read", "acquire_fence_first", kAllowed, kAllowed,
        kAllowed, kForbidden},
    Row{"", "acquire fence, then data_head read again", "head_read_again", kAllowed, kAllowed,
        kAllowed, kForbidden},
    Row{"D: records, then data_tail", "full fence, as shipped", "", kForbidden, kForbidden,
        kForbidden, kForbidden},
    Row{"", "release fence (herd7: release store)", "release_for_full", kForbidden,
        "forbidden (stlr)", "forbidden (fence rw,w)", kForbidden},
    Row{"", "acquire fence", "acquire_for_full", "allowed (rmb)", "forbidden (ishld)",
        "r,r allowed; r,rw forbidden", kForbidden},
    Row{"", "store-store fence", "store_store_for_full", kAllowed, "allowed (ishst)",
        "allowed (w,w)", kForbidden},
    Row{"", "nothing", "no_full_fence", kAllowed, kAllowed, kAllowed, kForbidden},
};

bool holds(Form form, const char* fault) {
  const Entry& ring = *find_entry("ring");
  ExploreOptions options;
  options.merge = true;
  for (const Case& each : ring.cases(*ring.size, form, fault)) {
    const Result result = explore(each.program, options);
    if (!result.bound.empty()) throw UsageError{"not proved: " + result.bound};
    if (result.violation) return false;
  }
  return true;
}

}  // namespace

std::string fences_table() {
  std::string text =
      "| between | there is | RC11, form A | RC11, form B | so it is | LKMM | AArch64 | RISC-V | "
      "x86 |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : kRows) {
    const bool a = holds(Form::A, row.fault);
    const bool b = holds(Form::B, row.fault);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.edge, row.with,
                        a ? "holds" : "fails", b ? "holds" : "fails",
                        a && b ? "sufficient" : "not enough", row.lkmm, row.aarch64, row.riscv,
                        row.x86);
  }
  return text;
}

}  // namespace perfring::model
