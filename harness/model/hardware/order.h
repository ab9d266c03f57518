#ifndef HARNESS_MODEL_HARDWARE_ORDER_H_
#define HARNESS_MODEL_HARDWARE_ORDER_H_

// A machine's instructions for C++'s accesses and fences and for the kernel's smp_wmb(), as
// compilers and arch/{arm64,riscv}/include/asm/barrier.h (v6.18) choose them, and the accesses that
// the machine's fences order. The explorer orders a thread by this table; ring/instructions_test
// compares the table with the instructions compiled from the source that ships.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/model/engine/step.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

// A fence, and the pairs of accesses, one before and one after it, that memory sees in order.
struct Barrier {
  std::string_view instruction;
  bool reads_reads = false, reads_writes = false, writes_reads = false, writes_writes = false;

  constexpr bool orders_all_of(const Barrier& other) const {
    return reads_reads >= other.reads_reads && reads_writes >= other.reads_writes &&
           writes_reads >= other.writes_reads && writes_writes >= other.writes_writes;
  }
};

// The instructions for the kernel's model (LKMM) are the kernel's own macros. LKMM has no releasing
// fence.
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

// Returns the barrier of a fence. `machine` is not Rc11.
constexpr const Barrier& barrier_of(MemoryModel machine, Order order) {
  for (const FenceInstructions& each : kFenceInstructions) {
    if (each.order != order) continue;
    return machine == MemoryModel::AArch64 ? each.aarch64
           : machine == MemoryModel::RiscV ? each.riscv
                                           : each.lkmm;
  }
  return kFenceInstructions[0].aarch64;
}

// For accesses that acquire or release, AArch64 has ldar and stlr, and the kernel's model has such
// accesses, too; RISC-V has a fence next to the access.
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

// The order that a machine keeps within one thread, step by step: Arm's lob, RISC-V's ppo, and
// LKMM's ppo without the part that follows from propagation. It depends on the thread's steps
// alone.

inline constexpr std::size_t kMachineEventsMax = 256;

using EventSet = std::bitset<kMachineEventsMax>;

// The accesses of a thread so far, and the accesses among them that come before its later ones.
class ThreadOrder {
 public:
  // Returns the thread's accesses that come before its next one, a read of `location` or a write to
  // it. `forwarded`: the read takes its value from the thread's own store.
  EventSet before_read(MemoryModel machine, const Step& read, std::size_t location,
                       bool forwarded) const;
  // Also adds the fence that precedes a releasing store on RISC-V.
  EventSet before_write(MemoryModel machine, const Step& write, std::size_t location);

  void add_read(MemoryModel machine, const Step& read, std::size_t location, std::size_t event);
  void add_write(const Step& write, std::size_t location, std::size_t event);
  void add_fence(MemoryModel machine, Order order) { add_barrier(barrier_of(machine, order)); }
  void add_control(std::uint32_t read) { before_writes_.set(reads_in_order_.at(read - 1)); }

  // Returns the events that come before all later stores of the thread.
  EventSet before_any_write() const { return before_writes_; }

 private:
  struct Stored {
    std::size_t location;
    std::size_t event;
    EventSet data;  // the read that its value is computed from
  };

  void add_barrier(const Barrier& barrier);
  std::size_t read_number(std::uint32_t read) const { return reads_in_order_.at(read - 1); }

  EventSet reads_, writes_;
  EventSet releasing_;
  EventSet before_reads_, before_writes_;  // before each later read or write
  std::vector<EventSet> at_location_;
  std::vector<std::size_t> reads_in_order_;
  std::vector<Stored> stored_;  // the last store to each location
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_ORDER_H_
