#ifndef HARNESS_MODEL_HARDWARE_ORDER_H_
#define HARNESS_MODEL_HARDWARE_ORDER_H_

// What a machine keeps in order of one thread (Arm's lob, RISC-V's ppo; LKMM's ppo but for what
// follows from propagation), step by step: it follows from the thread's steps alone.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/model/engine/step.h"
#include "harness/model/hardware/instructions.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

inline constexpr std::size_t kMachineEventsMax = 256;

using EventSet = std::bitset<kMachineEventsMax>;

// The accesses of a thread so far, and which of them come before its later ones.
class ThreadOrder {
 public:
  // The accesses of the thread that an access must follow: a read of `location`, or a write of it.
  // `forwarded`: it reads from the thread's own store.
  EventSet before_read(MemoryModel machine, const Step& read, std::size_t location,
                       bool forwarded) const;
  // Adds what the store orders, too: on RISC-V a releasing store has a fence before it.
  EventSet before_write(MemoryModel machine, const Step& write, std::size_t location);

  void add_read(MemoryModel machine, const Step& read, std::size_t location, std::size_t event);
  void add_write(const Step& write, std::size_t location, std::size_t event);
  void add_fence(MemoryModel machine, Order order) { add_barrier(barrier_of(machine, order)); }
  void add_control(std::uint32_t read) { before_writes_.set(reads_in_order_.at(read - 1)); }

  // Those that come before whatever the thread stores later.
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
  EventSet before_reads_, before_writes_;  // before each later one
  std::vector<EventSet> at_location_;
  std::vector<std::size_t> reads_in_order_;
  std::vector<Stored> stored_;  // the last store of each location
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_ORDER_H_
