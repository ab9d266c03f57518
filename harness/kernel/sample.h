#ifndef HARNESS_KERNEL_SAMPLE_H_
#define HARNESS_KERNEL_SAMPLE_H_

// Writes a sample: perf_output_sample() from kernel/events/core.c at v6.18.

#include <linux/perf_event.h>
#include <linux/types.h>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_buffer.h"

namespace perfring::kernel {

// `events` and `wakeup_events` are ints here (K30: 2^31 fires each time). Writers that interrupt
// one another here each subtract, which may make rb.events negative: see moments_test.cc.
template <Cpu C>
void count_for_wakeup(C& cpu, const perf_event& event, perf_buffer& rb) {
  const auto wakeup_events = static_cast<__s32>(event.attr.wakeup_events);
  if (event.attr.watermark != 0 || wakeup_events == 0) return;
  cpu.step();
  rb.events = rb.unsigned_long(rb.events + 1);
  const auto events = static_cast<__s32>(rb.events);
  if (events < wakeup_events) return;
  cpu.step();
  rb.events = rb.unsigned_long(rb.events - static_cast<__u64>(__s64{wakeup_events}));
  cpu.step();
  rb.wakeup = rb.unsigned_long(rb.wakeup + 1);
}

template <Cpu C>
void perf_output_sample(C& cpu, perf_output_handle& handle, const perf_event_header& header,
                        const perf_sample_data& data, const perf_event& event) {
  const __u64 type = event.attr.sample_type;
  perf_output_put(cpu, handle, header);
  if (type & PERF_SAMPLE_IDENTIFIER) perf_output_put(cpu, handle, data.id);
  if (type & PERF_SAMPLE_IP) perf_output_put(cpu, handle, data.ip);
  if (type & PERF_SAMPLE_TID) perf_output_put(cpu, handle, data.tid_entry);
  if (type & PERF_SAMPLE_TIME) perf_output_put(cpu, handle, data.time);
  if (type & PERF_SAMPLE_ADDR) perf_output_put(cpu, handle, data.addr);
  if (type & PERF_SAMPLE_ID) perf_output_put(cpu, handle, data.id);
  if (type & PERF_SAMPLE_STREAM_ID) perf_output_put(cpu, handle, data.stream_id);
  if (type & PERF_SAMPLE_CPU) perf_output_put(cpu, handle, data.cpu_entry);
  if (type & PERF_SAMPLE_PERIOD) perf_output_put(cpu, handle, data.period);
  if (type & PERF_SAMPLE_RAW) {
    perf_output_put(cpu, handle, data.raw.size);
    output_copy(cpu, handle, data.raw.data.data(), data.raw.data.size());
    perf_output_skip(cpu, handle, data.raw.pad);
  }
  count_for_wakeup(cpu, event, *handle.rb);
}

// kernel/events/core.c, perf_event_output(). Returns 0 or -ENOSPC.
template <Cpu C>
int perf_event_output(C& cpu, perf_event& event, perf_sample_data& data) {
  perf_output_handle handle;
  const perf_event_header header = perf_prepare_sample(cpu, data, event);
  if (const int error = perf_output_begin(cpu, handle, data, event, header.size); error != 0) {
    return error;
  }
  perf_output_sample(cpu, handle, header, data, event);
  perf_output_end(cpu, handle);
  return 0;
}

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_SAMPLE_H_
