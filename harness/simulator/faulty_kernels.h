#ifndef HARNESS_SIMULATOR_FAULTY_KERNELS_H_
#define HARNESS_SIMULATOR_FAULTY_KERNELS_H_

// Faults to be planted in a kernel: each is a Cpu over another, and does one thing wrong.

#include <linux/types.h>

#include <cstddef>
#include <optional>

#include "harness/kernel/perf_event.h"

namespace perfring::simulator {

// Stores data_head, and then writes the record.
template <class Base>
struct PublishesBeforeWriting : Base {
  using Base::Base;
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    Base::on_reserve(rb, position, size);
    this->write_once(rb.user_page->data_head, rb.head);
  }
};

// An inner writer publishes when it ends, while the outer one's record is unfinished.
template <class Base>
struct PublishesNested : Base {
  using Base::Base;
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    Base::on_reserve(rb, position, size);
    nested = rb.nest > 1 ? &rb : nullptr;
  }
  void step() {
    Base::step();
    if (nested == nullptr || nested->nest > 1) return;
    this->write_once(nested->user_page->data_head, nested->head);
    nested = nullptr;
  }
  const kernel::perf_buffer* nested = nullptr;
};

template <class Base>
struct CountsLossesTwice : Base {
  using Base::Base;
  void on_drop(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    Base::on_drop(rb, event);
    ++rb.lost;
  }
};

template <class Base>
struct ForgetsLosses : Base {
  using Base::Base;
  void on_drop(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    Base::on_drop(rb, event);
    rb.lost = 0;
  }
};

// For what follows: the data_head that was published last.
template <class Base>
struct RemembersHead : Base {
  using Base::Base;
  void write_once(__u64& data_head, __u64 value) {
    Base::write_once(data_head, value);
    head = value;
  }
  std::optional<__u64> head;
};

// Takes 8 bytes too many for free; not of an empty ring, which would look full for ever.
template <class Base>
struct SpaceOffBy8 : RemembersHead<Base> {
  using RemembersHead<Base>::RemembersHead;
  __u64 read_once(const __u64& data_tail) {
    const __u64 tail = Base::read_once(data_tail);
    return tail == this->head.value_or(tail) ? tail : tail + 8;
  }
};

// Takes what is published for read.
template <class Base>
struct IgnoresTail : RemembersHead<Base> {
  using RemembersHead<Base>::RemembersHead;
  __u64 read_once(const __u64& data_tail) {
    const __u64 tail = Base::read_once(data_tail);
    return this->head.value_or(tail);
  }
};

template <class Base>
struct LeavesOutAWord : Base {
  using Base::Base;
  void copy(std::byte* to, const void* from, std::size_t size) {
    Base::copy(to, from, size > 16 ? size - 8 : size);
  }
};

template <class Base>
struct WakesNobody : Base {
  using Base::Base;
  void irq_work_queue(const kernel::perf_event&) {}
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_FAULTY_KERNELS_H_
