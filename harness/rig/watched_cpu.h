#ifndef HARNESS_RIG_WATCHED_CPU_H_
#define HARNESS_RIG_WATCHED_CPU_H_

// The two ends of a watched ring: the kernel's CPU keeps the ledger, and the consumer's memory
// calls an observer.

#include <linux/perf_event.h>
#include <linux/types.h>

#include <cstddef>
#include <utility>

#include "harness/kernel/cpu.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/oracle/checker.h"
#include "harness/oracle/ledger.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"

namespace perfring::rig {

// A CPU with tracepoints that keep the ledger; the ledger judges the kernel by them. A faulty
// kernel is a LedgerCpu over a Base that does one thing wrong, or derives from a LedgerCpu.
template <class Base = kernel::HardwareCpu>
struct LedgerCpu : Base {
  explicit LedgerCpu(oracle::Ledger& to) : ledger{to} {}
  // With a checker, the ledger judges room by the bytes that the consumer was entitled to release,
  // not by data_tail.
  LedgerCpu(oracle::Ledger& to, const oracle::Checker& beside) : ledger{to}, checker{&beside} {}

  oracle::Ledger& ledger;
  const oracle::Checker* const checker = nullptr;

  // data_tail may advance before the kernel reads it, and then leaves more room than the ledger
  // assumed.
  __u64 read_once(const __u64& data_tail) {
    ledger.note_tail_read(kernel::HardwareCpu{}.read_once(data_tail));
    return Base::read_once(data_tail);
  }
  void write_once(__u64& data_head, __u64 value) {
    ledger.note_publication(value);
    Base::write_once(data_head, value);
  }
  // Bypasses the ledger, for a kernel that publishes by a store that it should not do.
  void write_unrecorded(__u64& data_head, __u64 value) { Base::write_once(data_head, value); }
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    ledger.note_reservation(position, size, released(rb));
    Base::on_reserve(rb, position, size);
  }
  void on_lost_record(const kernel::perf_buffer& rb, __u64 lost) {
    ledger.note_report(lost);
    Base::on_lost_record(rb, lost);
  }
  void on_drop(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    ledger.note_refusal(rb.paused.load());
    Base::on_drop(rb, event);
  }

 private:
  __u64 released(const kernel::perf_buffer& rb) const {
    if (checker != nullptr) return checker->released();
    return kernel::HardwareCpu{}.read_once(rb.user_page->data_tail);
  }
};

// Observes each access of a drain before it happens.
class MemoryObserver {
 public:
  virtual void on_read(const std::byte* address, std::size_t size) = 0;
  virtual void on_commit(SharedPosition data_tail) = 0;
  virtual void on_head() {}  // before data_head is read

 protected:
  ~MemoryObserver() = default;
};

// This machine's memory, with an observer. The observer is a static variable, because a policy has
// no object. Only for one thread that plays all parts: nothing else runs between two accesses,
// unlike with SimulatedMemory in harness/simulator.
struct CheckedMemory : DefaultMemory {
  static inline constinit MemoryObserver* observer = nullptr;

  static Position read_once(const SharedPosition& data_head) {
    if (observer != nullptr) observer->on_head();
    return DefaultMemory::read_once(data_head);
  }
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    if (observer != nullptr) observer->on_commit(value);
    DefaultMemory::write_once(data_tail, value);
  }
  static void note_read(const std::byte* address, std::size_t size) {
    if (observer != nullptr) observer->on_read(address, size);
  }
  template <class T>
  static T read(const std::byte* address) {
    note_read(address, sizeof(T));
    return DefaultMemory::read<T>(address);
  }
};
static_assert(Memory<CheckedMemory>);

// Observes drains until the end of its scope; scopes nest.
class ObserverScope {
 public:
  explicit ObserverScope(MemoryObserver& observer)
      : before_{std::exchange(CheckedMemory::observer, &observer)} {}
  ~ObserverScope() { CheckedMemory::observer = before_; }
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

 private:
  MemoryObserver* const before_;
};

}  // namespace perfring::rig

#endif  // HARNESS_RIG_WATCHED_CPU_H_
