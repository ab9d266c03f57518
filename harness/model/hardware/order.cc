#include "harness/model/hardware/order.h"

#include <algorithm>

namespace perfring::model {

// AArch64: a dependent store forwards to the reads after it (data; lrs), a read that acquires waits
// for stores that release. RISC-V, LKMM: data; rfi, which is the same where the read takes the
// store's value; the others are ordered by what they read.
EventSet ThreadOrder::before_read(MemoryModel machine, const Step& read, std::size_t location,
                                  bool forwarded) const {
  EventSet before = before_reads_;
  const auto last = std::ranges::find(stored_, location, &Stored::location);
  if (last != stored_.end() && (forwarded || machine == MemoryModel::AArch64)) {
    before |= last->data;
  }
  if (machine == MemoryModel::AArch64 && acquires(read.order)) before |= releasing_;
  return before;
}

EventSet ThreadOrder::before_write(MemoryModel machine, const Step& write, std::size_t location) {
  if (releases(write.order) && !has_ordered_accesses(machine)) {
    add_barrier(barrier_of(machine, Order::Release));
  }
  EventSet before = before_writes_;
  if (location < at_location_.size()) before |= at_location_[location];
  if (releases(write.order)) before |= reads_ | writes_;
  if (write.depends_on != 0) before.set(read_number(write.depends_on));
  return before;
}

void ThreadOrder::add_read(MemoryModel machine, const Step& read, std::size_t location,
                           std::size_t event) {
  if (at_location_.size() <= location) at_location_.resize(location + 1);
  at_location_[location].set(event);
  reads_.set(event);
  reads_in_order_.push_back(event);
  if (!acquires(read.order)) return;
  if (has_ordered_accesses(machine)) {
    before_reads_.set(event);
    before_writes_.set(event);
  } else {
    add_barrier(barrier_of(machine, Order::Acquire));
  }
}

void ThreadOrder::add_write(const Step& write, std::size_t location, std::size_t event) {
  if (at_location_.size() <= location) at_location_.resize(location + 1);
  at_location_[location].set(event);
  writes_.set(event);
  if (releases(write.order)) releasing_.set(event);
  auto last = std::ranges::find(stored_, location, &Stored::location);
  if (last == stored_.end()) last = stored_.insert(last, Stored{location, event, {}});
  last->event = event;
  last->data.reset();
  if (write.depends_on != 0) last->data.set(read_number(write.depends_on));
}

void ThreadOrder::add_barrier(const Barrier& barrier) {
  if (barrier.reads_reads) before_reads_ |= reads_;
  if (barrier.reads_writes) before_writes_ |= reads_;
  if (barrier.writes_reads) before_reads_ |= writes_;
  if (barrier.writes_writes) before_writes_ |= writes_;
}

}  // namespace perfring::model
