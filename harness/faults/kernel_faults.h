#ifndef HARNESS_FAULTS_KERNEL_FAULTS_H_
#define HARNESS_FAULTS_KERNEL_FAULTS_H_

// Simulated kernels with one fault each: mixins over any kernel::Cpu. A mixin overrides the part
// that it gets wrong, and leaves the rest to its Base. FAULTS.md lists the faults, and the
// harnesses that find them.

#include <linux/perf_event.h>
#include <linux/types.h>
#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_buffer.h"

namespace perfring::faults {

// Edge A of lib/perfring/ring/memory.h is missing.
template <class Base>
struct NoControlDependency : Base {
  using Base::Base;
  void control_dependency(const __u64&) {}
};

// Edge B is missing.
template <class Base>
struct NoSmpWmb : Base {
  using Base::Base;
  void smp_wmb(const __u64&) {}
};

template <class Base>
struct PublishesBeforeWriting : Base {
  using Base::Base;
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    Base::on_reserve(rb, position, size);
    Base::smp_wmb(rb.user_page->data_head);
    Base::write_once(rb.user_page->data_head, rb.head);
  }
};

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
    // The inner writer has ended; the outer one has not.
    const kernel::perf_buffer& rb = *std::exchange(nested, nullptr);
    Base::smp_wmb(rb.user_page->data_head);
    Base::write_once(rb.user_page->data_head, rb.head);
  }
  const kernel::perf_buffer* nested = nullptr;
};

// Stores in an order that other processors may observe if edge B is missing.
template <class Base>
struct StoresAfterPublishing : Base {
  using Base::Base;
  void step() {
    Base::step();
    if (!std::exchange(published, false)) return;
    for (const auto& [to, bytes] : std::exchange(stores, {})) {
      Base::copy(to, bytes.data(), bytes.size());
    }
  }
  void copy(std::byte* to, const void* from, std::size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    stores.emplace_back(to, std::vector<std::byte>{bytes, bytes + size});
  }
  void write_once(__u64& data_head, __u64 value) {
    Base::write_once(data_head, value);
    published = true;
    ::sched_yield();  // a consumer on the same CPU reads now, or hardly ever before the stores
  }
  bool published = false;
  std::vector<std::pair<std::byte*, std::vector<std::byte>>> stores;
};

template <class Base>
struct PublishesUnaligned : Base {
  using Base::Base;
  void write_once(__u64& data_head, __u64 value) { Base::write_once(data_head, value - 4); }
};

// Keeps the buffer, from the first reservation on, for the faults below.
template <class Base>
struct RemembersBuffer : Base {
  using Base::Base;
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    Base::on_reserve(rb, position, size);
    buffer = &rb;
  }
  const kernel::perf_buffer* buffer = nullptr;
};

// Shows each reservation in data_head, by a store that bypasses the ledger, if there is one.
template <class Base>
struct ExposesReservations : RemembersBuffer<Base> {
  using RemembersBuffer<Base>::RemembersBuffer;
  void step() {
    if (this->buffer != nullptr && this->buffer->head != shown) show();
    Base::step();
  }
  void show() {
    shown = this->buffer->head;
    __u64& data_head = this->buffer->user_page->data_head;
    if constexpr (requires { Base::write_unrecorded(data_head, *shown); }) {
      Base::write_unrecorded(data_head, *shown);
    } else {
      Base::write_once(data_head, *shown);
    }
  }
  std::optional<__u64> shown;
};

// Also changes 4 bytes at the ring's beginning, which do not belong to the record.
template <class Base>
struct CorruptsRingStart : Base {
  using Base::Base;
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    Base::on_reserve(rb, position, size);
    constexpr __u32 kInk = 0x696e'6b21;
    if (position % rb.data_size() != 0) Base::copy(rb.data_pages + 12, &kInk, sizeof(kInk));
  }
};

// Treats kBytes unread bytes as free. circ_space() keeps one byte free, and records are multiples
// of 8, so that 8 more bytes make the ring completely full.
template <class Base, __u32 kBytes>
struct SpaceOffBy : RemembersBuffer<Base> {
  using RemembersBuffer<Base>::RemembersBuffer;
  // perf_output_begin() compares data_tail with the head that it has read before this step: an
  // output by an interrupt at this step does not change this head.
  void step() {
    const auto head =
        this->buffer != nullptr ? std::optional<__u64>{this->buffer->head} : std::nullopt;
    Base::step();
    compared = head;
  }
  __u64 read_once(const __u64& data_tail) {
    const __u64 tail = Base::read_once(data_tail);
    if (!compared) return tail;
    const auto goes_back = [](const auto* event) { return event->attr.write_backward != 0; };
    const bool backward = std::ranges::any_of(this->buffer->event_list, goes_back);
    const auto unread = static_cast<__u32>(backward ? tail - *compared : *compared - tail);
    const __u32 taken = std::min(unread, kBytes);
    return backward ? tail - taken : tail + taken;
  }
  std::optional<__u64> compared;
};
template <class Base>
using IgnoresTail = SpaceOffBy<Base, ~__u32{0}>;
template <class Base>
using SpaceOffBy8 = SpaceOffBy<Base, 8>;
template <class Base>
using OneRecordTooMany = SpaceOffBy<Base, 24>;

template <class Base>
struct RefusesInAnEmptyRing : Base {
  using Base::Base;
  __u64 read_once(const __u64& data_tail) { return Base::read_once(data_tail) + 8; }
};

template <class Base>
struct CountsLossesTwice : Base {
  using Base::Base;
  void on_drop(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    Base::on_drop(rb, event);
    rb.lost = rb.lost + 1;
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

// The tracepoint has the right count, the record a wrong one.
template <class Base>
struct WritesAWrongLostCount : Base {
  using Base::Base;
  void copy(std::byte* to, const void* from, std::size_t size) {
    kernel::lost_event lost;
    if (size != sizeof(lost)) return Base::copy(to, from, size);
    std::memcpy(&lost, from, sizeof(lost));
    // (A payload may begin like the header of a LOST.)
    const bool is_lost = lost.header.type == PERF_RECORD_LOST && lost.header.size == sizeof(lost);
    if (!is_lost) return Base::copy(to, from, size);
    ++lost.lost;
    Base::copy(to, &lost, sizeof(lost));
  }
};

template <class Base>
struct OmitsLastWord : Base {
  using Base::Base;
  void copy(std::byte* to, const void* from, std::size_t size) {
    Base::copy(to, from, size > 16 ? size - 8 : size);
  }
};

// Writes a raw size that agrees with the truncated header.size; the kernel writes the whole size
// (K6).
template <class Base>
struct TruncatesRaw : Base {
  using Base::Base;
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    Base::on_reserve(rb, position, size);
    reserved = size;
  }
  void copy(std::byte* to, const void* from, std::size_t size) {
    Base::copy(to, from, size);
    __u32 raw;
    if (size != sizeof(raw)) return;
    std::memcpy(&raw, from, sizeof(raw));
    constexpr std::size_t kLost = 24;
    const std::size_t sample = (std::size_t{raw} + 12) % 65536;
    // Skip 4 bytes of a payload.
    if (raw <= 65516 || (sample != reserved && sample + kLost != reserved)) return;
    raw = static_cast<__u32>(sample) - 12;
    std::memcpy(to, &raw, sizeof(raw));
  }
  std::size_t reserved = 0;
};

template <class Base>
struct DetachesRing : Base {
  using Base::Base;
  void irq_work_queue(kernel::perf_event& event) {
    Base::irq_work_queue(event);
    event.rb.store(nullptr);
  }
};

// Sets poll's flag, but wakes no waiter.
template <class Base>
struct WakesNobody : Base {
  using Base::Base;
  void irq_work_queue(kernel::perf_event&) {}
};

// The next wakeup makes up for a forgotten one, unless the consumer is checked in between.
template <class Base>
struct WakesEverySecondTime : Base {
  using Base::Base;
  void irq_work_queue(kernel::perf_event& event) {
    forgets = !forgets;
    if (!forgets) Base::irq_work_queue(event);
  }
  bool forgets = false;
};

template <class Base>
struct SetsNoPollFlag : Base {
  using Base::Base;
  void irq_work_queue(kernel::perf_event& event) { event.rb.load()->poll.store(0); }
};

// Wakes when the next record is published.
template <class Base>
struct WakesOneRecordLate : Base {
  using Base::Base;
  void write_once(__u64& data_head, __u64 value) {
    Base::write_once(data_head, value);
    kernel::perf_event* const event = std::exchange(late, nullptr);
    if (event == nullptr) return;
    event->rb.load()->poll.store(EPOLLIN | EPOLLRDNORM);
    Base::irq_work_queue(*event);
  }
  void irq_work_queue(kernel::perf_event& event) {
    event.rb.load()->poll.store(0);
    late = &event;
  }
  kernel::perf_event* late = nullptr;
};

// Wakes when the record is reserved.
template <class Base>
struct WakesBeforePublishing : Base {
  using Base::Base;
  void on_reserve(const kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    Base::on_reserve(rb, position, size);
    for (kernel::perf_event* const event : rb.event_list) kernel::perf_pending_irq(*event);
  }
  void irq_work_queue(kernel::perf_event&) {}
};

template <class Base>
struct AnnouncesRefusals : Base {
  using Base::Base;
  void on_drop(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    Base::on_drop(rb, event);
    rb.poll.store(EPOLLIN | EPOLLRDNORM);
  }
};

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_KERNEL_FAULTS_H_
