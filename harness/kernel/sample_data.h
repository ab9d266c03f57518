#ifndef HARNESS_KERNEL_SAMPLE_DATA_H_
#define HARNESS_KERNEL_SAMPLE_DATA_H_

// The fields of a sample: perf_prepare_sample() of kernel/events/core.c at v6.18, and
// perf_sample_save_raw_data() of include/linux/perf_event.h.

#include <linux/perf_event.h>
#include <linux/types.h>

#include <cstddef>
#include <span>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"

namespace perfring::kernel {

struct perf_raw_record {
  std::span<const std::byte> data;
  __u32 size = 0;  // padding included
  __u32 pad = 0;
};

struct perf_sample_data {
  perf_raw_record raw;
  __u64 dyn_size = 0;
  __u64 ip = 0;
  struct {
    __u32 pid, tid;
  } tid_entry{};
  __u64 time = 0;
  __u64 addr = 0;
  __u64 period = 0;
  // perf_prepare_sample() sets these whatever the sample_type.
  __u64 id;
  __u64 stream_id;
  struct {
    __u32 cpu, reserved;
  } cpu_entry;
};

// The raw size is what makes the record a multiple of 8 bytes long (K1).
inline void perf_sample_save_raw_data(perf_sample_data& data, const perf_event& event,
                                      std::span<const std::byte> bytes) {
  if ((event.attr.sample_type & PERF_SAMPLE_RAW) == 0) return;
  const auto sum = static_cast<__u32>(bytes.size());
  const __u32 size = (sum + static_cast<__u32>(sizeof(__u32)) + 7) & ~__u32{7};
  data.raw = {bytes, size - static_cast<__u32>(sizeof(__u32)), 0};
  data.raw.pad = data.raw.size - sum;
  data.dyn_size += size;
}

// TIME is taken here, before the reservation (K22).
template <Cpu C>
perf_event_header perf_prepare_sample(C& cpu, perf_sample_data& data, const perf_event& event) {
  const __u64 type = event.attr.sample_type;
  if (type & PERF_SAMPLE_TID) data.tid_entry = {cpu.pid, cpu.tid};
  if (type & PERF_SAMPLE_TIME) data.time = cpu.clock();
  data.id = event.id;
  data.stream_id = event.id;
  data.cpu_entry = {static_cast<__u32>(cpu.id), 0};
  const __u64 size =
      sizeof(perf_event_header) + event.header_size + event.id_header_size + data.dyn_size;
  // The u16 wraps unchecked (K6).
  return {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, static_cast<__u16>(size)};
}

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_SAMPLE_DATA_H_
