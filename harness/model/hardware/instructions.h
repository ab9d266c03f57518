#ifndef HARNESS_MODEL_HARDWARE_INSTRUCTIONS_H_
#define HARNESS_MODEL_HARDWARE_INSTRUCTIONS_H_

// Which instructions a machine has for C++'s accesses and fences and for the kernel's smp_wmb(), as
// compilers and arch/{arm64,riscv}/include/asm/barrier.h (v6.18) choose them, and what its fences
// order. The explorer orders a thread by this table; ring/instructions_test holds it beside what
// the source that ships is compiled to.

#include <array>
#include <string_view>

#include "harness/model/engine/step.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

// Of a thread's accesses before the fence and those after it, the pairs that memory sees in order.
struct Barrier {
  std::string_view instruction;
  bool reads_reads = false, reads_writes = false, writes_reads = false, writes_writes = false;

  constexpr bool orders_all_of(const Barrier& other) const {
    return reads_reads >= other.reads_reads && reads_writes >= other.reads_writes &&
           writes_reads >= other.writes_reads && writes_writes >= other.writes_writes;
  }
};

// To a machine of the kernel's model (LKMM) they are the kernel's own macros; it has none that
// releases.
struct FenceInstructions {
  Order order;
  Barrier aarch64, riscv, lkmm;
};

inline constexpr std::array<FenceInstructions, 6> kFenceInstructions = {{
    {Order::Relaxed, {}, {}, {}},  // none
    {Order::Acquire,
     {"dmb ishld", true, true, false, false},
     {"fence r,rw", true, true, false, false},
     {"smp_rmb()", true, false, false, false}},
    {Order::Release,
     {"dmb ish", true, true, true, true},
     {"fence rw,w", false, true, false, true},
     {}},
    {Order::AcquireRelease,
     {"dmb ish", true, true, true, true},
     {"fence.tso", true, true, false, true},
     {}},
    {Order::SequentiallyConsistent,
     {"dmb ish", true, true, true, true},
     {"fence rw,rw", true, true, true, true},
     {"smp_mb()", true, true, true, true}},
    {Order::StoreStore,
     {"dmb ishst", false, false, false, true},
     {"fence w,w", false, false, false, true},
     {"smp_wmb()", false, false, false, true}},
}};

// Of a fence. Not of Rc11.
constexpr const Barrier& barrier_of(MemoryModel machine, Order order) {
  for (const FenceInstructions& each : kFenceInstructions) {
    if (each.order != order) continue;
    return machine == MemoryModel::AArch64 ? each.aarch64
           : machine == MemoryModel::RiscV ? each.riscv
                                           : each.lkmm;
  }
  return kFenceInstructions[0].aarch64;
}

// AArch64 has ldar and stlr for accesses that acquire or release, as the kernel's model does,
// RISC-V a fence beside them.
constexpr bool has_ordered_accesses(MemoryModel machine) {
  return machine != MemoryModel::RiscV;
}

constexpr std::string_view load_of(MemoryModel machine, Order order) {
  if (machine == MemoryModel::RiscV) return "ld";
  return acquires(order) ? "ldar" : "ldr";
}
constexpr std::string_view store_of(MemoryModel machine, Order order) {
  if (machine == MemoryModel::RiscV) return "sd";
  return releases(order) ? "stlr" : "str";
}

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_INSTRUCTIONS_H_
