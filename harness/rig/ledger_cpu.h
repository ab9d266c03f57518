#ifndef HARNESS_RIG_LEDGER_CPU_H_
#define HARNESS_RIG_LEDGER_CPU_H_

#include <linux/perf_event.h>
#include <linux/types.h>

#include <cstddef>

#include "harness/kernel/cpu.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/oracle/checker.h"
#include "harness/oracle/ledger.h"

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

}  // namespace perfring::rig

#endif  // HARNESS_RIG_LEDGER_CPU_H_
