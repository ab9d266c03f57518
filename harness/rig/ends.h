#ifndef HARNESS_RIG_ENDS_H_
#define HARNESS_RIG_ENDS_H_

// The two ends of a watched ring: the kernel's keeps the ledger, the consumer's calls an observer.

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

// A CPU whose tracepoints keep the ledger, which judges the kernel by them. A faulty kernel
// is a LedgerCpu over a Base that does one thing wrong, or derives from one.
template <class Base = kernel::HardwareCpu>
struct LedgerCpu : Base {
  explicit LedgerCpu(oracle::Ledger& to) : ledger{to} {}
  // With a checker, room is judged by what the consumer was entitled to release, not by data_tail.
  LedgerCpu(oracle::Ledger& to, const oracle::Checker& beside) : ledger{to}, checker{&beside} {}

  oracle::Ledger& ledger;
  const oracle::Checker* const checker = nullptr;

  // data_tail may move on until the kernel reads it, which leaves more room than was judged by.
  __u64 read_once(const __u64& data_tail) {
    ledger.reads_tail(kernel::HardwareCpu{}.read_once(data_tail));
    return Base::read_once(data_tail);
  }
  void write_once(__u64& data_head, __u64 value) {
    ledger.published(value);
    Base::write_once(data_head, value);
  }
  // For a kernel that publishes by a store that it should not make.
  void write_unseen(__u64& data_head, __u64 value) { Base::write_once(data_head, value); }
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    ledger.reserved(position, size, released(rb));
    Base::on_reserve(rb, position, size);
  }
  void on_lost_record(const kernel::perf_buffer& rb, __u64 lost) {
    ledger.reported(lost);
    Base::on_lost_record(rb, lost);
  }
  void on_drop(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    ledger.refused(rb.paused.load());
    Base::on_drop(rb, event);
  }

 private:
  __u64 released(const kernel::perf_buffer& rb) const {
    if (checker != nullptr) return checker->released();
    return kernel::HardwareCpu{}.read_once(rb.user_page->data_tail);
  }
};

// Sees each access of a drain before it happens.
class MemoryObserver {
 public:
  virtual void on_read(const std::byte* address, std::size_t size) = 0;
  virtual void on_commit(SharedPosition data_tail) = 0;
  virtual void on_head() {}  // data_head is read

 protected:
  ~MemoryObserver() = default;
};

// This machine's memory, and an observer. A policy has no object, so the observer is a variable.
// For one thread that plays all parts: nothing else runs between two accesses, as it does with
// SimulatedMemory of harness/simulator.
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
  static void sees_read(const std::byte* address, std::size_t size) {
    if (observer != nullptr) observer->on_read(address, size);
  }
  template <class T>
  static T read(const std::byte* address) {
    sees_read(address, sizeof(T));
    return DefaultMemory::read<T>(address);
  }
};
static_assert(Memory<CheckedMemory>);

// Drains observed from here on, until the end of this scope; scopes nest.
class Observing {
 public:
  explicit Observing(MemoryObserver& observer)
      : before_{std::exchange(CheckedMemory::observer, &observer)} {}
  ~Observing() { CheckedMemory::observer = before_; }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

 private:
  MemoryObserver* const before_;
};

}  // namespace perfring::rig

#endif  // HARNESS_RIG_ENDS_H_
