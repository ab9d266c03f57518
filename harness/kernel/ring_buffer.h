#ifndef HARNESS_KERNEL_RING_BUFFER_H_
#define HARNESS_KERNEL_RING_BUFFER_H_

// The ring, as in kernel/events/ring_buffer.c and internal.h at v6.18. The README maps these
// functions to the kernel's. Everything runs on the CPU to which the ring's events are bound:
// writers interrupt one another there and never run in parallel. Other threads share only
// data_head, data_tail, the data, `poll`, and `paused`, which an ioctl sets.

#include <linux/perf_event.h>
#include <linux/types.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"

namespace perfring::kernel {

// One reservation, and the progress of filling it.
struct perf_output_handle {
  perf_event* event = nullptr;
  perf_buffer* rb = nullptr;
  __u64 wakeup = 0;
  std::byte* addr = nullptr;  // address of the next byte
  __u64 size = 0;             // bytes left in the page of `addr`
  __u64 page = 0;
};

inline void HardwareCpu::irq_work_queue(perf_event& event) {
  perf_pending_irq(event);
}

template <Cpu C>
void perf_output_wakeup(C& cpu, perf_output_handle& handle) {
  // atomic_set() in the kernel: the wakeup itself provides the ordering.
  handle.rb->poll.store(EPOLLIN | EPOLLRDNORM, std::memory_order_release);
  cpu.step();
  cpu.irq_work_queue(*handle.event);
}

template <Cpu C>
void perf_output_get_handle(C& cpu, perf_output_handle& handle) {
  cpu.step();
  handle.rb->nest++;
  cpu.step();
  handle.wakeup = handle.rb->wakeup;
}

// perf_output_put_handle() before 5.2 (1b038c6e05ff "perf/ring_buffer: Fix exposing a temporarily
// decreased data_head"): sets nest to 0 before it stores data_head. An interrupt in between
// publishes more. Then data_head goes back, until the next turn of the loop (K59).
template <Cpu C>
void perf_output_put_handle_before_5_2(C& cpu, perf_output_handle& handle) {
  perf_buffer& rb = *handle.rb;
  for (;;) {
    cpu.step();
    const __u64 head = rb.head;
    cpu.step();
    if (--rb.nest != 0) return;
    cpu.step();
    cpu.smp_wmb(rb.user_page->data_head);  // B, matches C
    cpu.step();
    cpu.write_once(rb.user_page->data_head, head);
    cpu.step();
    if (head == rb.head) break;
    cpu.step();
    rb.nest++;
  }
  cpu.step();
  const bool wakes = handle.wakeup != rb.wakeup;
  cpu.step();
  if (wakes) perf_output_wakeup(cpu, handle);
}

// Only the outermost writer publishes. It repeats until no interrupt came in between: a record that
// an interrupt writes between the last read of `head` and nest = 0 would otherwise stay
// unpublished.
template <Cpu C>
void perf_output_put_handle(C& cpu, perf_output_handle& handle) {
  perf_buffer& rb = *handle.rb;
  if (rb.before_5_2) [[unlikely]]
    return perf_output_put_handle_before_5_2(cpu, handle);
  cpu.step();
  const unsigned nest = rb.nest;
  if (nest > 1) {
    rb.nest = nest - 1;
    return;
  }
  for (;;) {
    cpu.step();
    const __u64 head = rb.head;
    cpu.step();
    cpu.smp_wmb(rb.user_page->data_head);  // B, matches C
    cpu.step();
    cpu.write_once(rb.user_page->data_head, head);
    cpu.step();
    rb.nest = 0;
    cpu.step();
    if (head == rb.head) break;
    cpu.step();
    rb.nest = 1;
  }
  cpu.step();
  const bool wakes = handle.wakeup != rb.wakeup;
  cpu.step();
  if (wakes) perf_output_wakeup(cpu, handle);
}

// One byte always stays free, to distinguish a full ring from an empty one (K12).
constexpr __u64 circ_space(__u64 head, __u64 tail, __u64 size) {
  return (tail - (head + 1)) & (size - 1);
}

inline bool ring_buffer_has_space(const perf_buffer& rb, __u64 head, __u64 tail, __u64 size,
                                  bool backward) {
  return backward ? circ_space(tail, head, rb.data_size()) >= size
                  : circ_space(head, tail, rb.data_size()) >= size;
}

// kernel/events/ring_buffer.c, DEFINE_OUTPUT_COPY: copies page by page. If `from` is null, skips
// the bytes, which keep their old values (K2).
template <Cpu C>
void output_copy(C& cpu, perf_output_handle& handle, const void* from, __u64 length) {
  const auto* bytes = static_cast<const std::byte*>(from);
  const perf_buffer& rb = *handle.rb;
  while (length != 0) {
    const __u64 size = std::min(handle.size, length);
    if (bytes != nullptr) {
      cpu.step();
      cpu.copy(handle.addr, bytes, static_cast<std::size_t>(size));
      bytes += size;
    }
    length -= size;
    handle.addr += size;
    handle.size -= size;
    if (handle.size == 0) {
      handle.page = (handle.page + 1) & (rb.nr_pages - 1);
      handle.addr = rb.data_pages + (handle.page << rb.page_shift);
      handle.size = __u64{1} << rb.page_shift;
    }
  }
}

template <Cpu C, class T>
void perf_output_put(C& cpu, perf_output_handle& handle, const T& value) {
  output_copy(cpu, handle, &value, sizeof(value));
}

template <Cpu C>
void perf_output_skip(C& cpu, perf_output_handle& handle, __u64 length) {
  output_copy(cpu, handle, nullptr, length);
}

// core.c, __perf_event__output_id_sample(): the fields that attr.sample_id_all adds to records
// other than samples (K20).
template <Cpu C>
void perf_event__output_id_sample(C& cpu, perf_output_handle& handle, const perf_event& event,
                                  const perf_sample_data& data) {
  const __u64 type = event.attr.sample_type;
  if (type & PERF_SAMPLE_TID) perf_output_put(cpu, handle, data.tid_entry);
  if (type & PERF_SAMPLE_TIME) perf_output_put(cpu, handle, data.time);
  if (type & PERF_SAMPLE_ID) perf_output_put(cpu, handle, data.id);
  if (type & PERF_SAMPLE_STREAM_ID) perf_output_put(cpu, handle, data.stream_id);
  if (type & PERF_SAMPLE_CPU) perf_output_put(cpu, handle, data.cpu_entry);
  if (type & PERF_SAMPLE_IDENTIFIER) perf_output_put(cpu, handle, data.id);
}

// An interrupt can come between the failed space check and the count of the loss.
template <Cpu C>
int output_refused(C& cpu, perf_buffer& rb, perf_event& event) {
  cpu.step();
  rb.lost = rb.unsigned_long(rb.lost + 1);
  event.lost_samples.fetch_add(1);
  cpu.on_drop(rb, event);
  return -ENOSPC;
}

struct lost_event {
  perf_event_header header;
  __u64 id;
  __u64 lost;
};

// The LOST in front of a record, in the same reservation (K14).
template <Cpu C>
void output_lost(C& cpu, perf_output_handle& handle, const perf_event& event,
                 const perf_sample_data& data) {
  cpu.step();
  const __u64 lost = std::exchange(handle.rb->lost, 0);  // 0 if an interrupt reported them
  cpu.on_lost_record(*handle.rb, lost);
  lost_event record{{PERF_RECORD_LOST, 0, sizeof(lost_event)}, event.id, lost};
  if (event.attr.sample_id_all != 0) record.header.size += event.id_header_size;
  perf_output_put(cpu, handle, record);
  if (event.attr.sample_id_all != 0) perf_event__output_id_sample(cpu, handle, event, data);
}

// Points the handle to the bytes of a reservation that starts at `position`.
inline void point_at(perf_output_handle& handle, __u64 position) {
  const perf_buffer& rb = *handle.rb;
  const __u64 page_size = __u64{1} << rb.page_shift;
  const __u64 offset = position & (page_size - 1);
  handle.page = (position >> rb.page_shift) & (rb.nr_pages - 1);
  handle.addr = rb.data_pages + (handle.page << rb.page_shift) + offset;
  handle.size = page_size - offset;
}

// Like try_cmpxchg(): on failure, sets `expected` to the current value.
inline bool local_try_cmpxchg(__u64& field, __u64& expected, __u64 value) {
  if (field != expected) {
    expected = field;
    return false;
  }
  field = value;
  return true;
}

// Adds the watermark at most once per record, even if `wakeup` is further behind (K30). Writers
// that interrupt one another here each add it, which may move `wakeup` past the head: see
// moments_test.cc.
template <Cpu C>
void count_bytes_for_wakeup(C& cpu, perf_buffer& rb, __u64 head) {
  const __u64 watermark = rb.unsigned_long(static_cast<__u64>(rb.watermark));
  cpu.step();
  if (rb.unsigned_long(head - rb.wakeup) <= watermark) return;
  cpu.step();
  rb.wakeup = rb.unsigned_long(rb.wakeup + watermark);
}

// kernel/events/ring_buffer.c, __perf_output_begin(). `size` is header.size with its 16 bits; the
// space check uses only those (K10). Returns 0 or -ENOSPC.
template <Cpu C>
int perf_output_begin(C& cpu, perf_output_handle& handle, const perf_sample_data& data,
                      perf_event& event, __u64 size) {
  const bool backward = event.attr.write_backward != 0;
  perf_buffer* const ring = event.rb.load();
  if (ring == nullptr) return -ENOSPC;
  perf_buffer& rb = *ring;
  if (rb.paused.load()) return rb.nr_pages != 0 ? output_refused(cpu, rb, event) : -ENOSPC;

  handle.rb = &rb;
  handle.event = &event;
  cpu.step();
  const bool have_lost = static_cast<__s32>(rb.lost) != 0;  // an int in the kernel
  if (have_lost) {
    size += sizeof(lost_event);
    if (event.attr.sample_id_all != 0) size += event.id_header_size;
  }
  perf_output_get_handle(cpu, handle);

  cpu.step();
  __u64 offset = rb.head;
  __u64 head = 0;
  do {
    cpu.step();
    const __u64 tail = rb.unsigned_long(cpu.read_once(rb.user_page->data_tail));
    const bool fits = rb.overwrite || ring_buffer_has_space(rb, offset, tail, size, backward);
    // Barrier A, pairs with D. The processor does not move a store after a branch before the read
    // that decides the branch, whichever way it goes. This includes the stores of a refused output.
    cpu.control_dependency(rb.user_page->data_tail);
    if (!fits) {
      output_refused(cpu, rb, event);
      perf_output_put_handle(cpu, handle);
      return -ENOSPC;
    }
    head = rb.unsigned_long(backward ? offset - size : offset + size);
    cpu.step();
  } while (!local_try_cmpxchg(rb.head, offset, head));
  if (backward) offset = head;
  cpu.on_reserve(rb, offset, static_cast<std::size_t>(size));

  count_bytes_for_wakeup(cpu, rb, backward ? rb.unsigned_long(-head) : head);
  point_at(handle, offset);
  if (have_lost) output_lost(cpu, handle, event, data);
  return 0;
}

template <Cpu C>
void perf_output_end(C& cpu, perf_output_handle& handle) {
  perf_output_put_handle(cpu, handle);
}

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_RING_BUFFER_H_
