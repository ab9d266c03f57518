#ifndef HARNESS_KERNEL_PERF_EVENT_ARRAY_H_
#define HARNESS_KERNEL_PERF_EVENT_ARRAY_H_

// BPF_MAP_TYPE_PERF_EVENT_ARRAY, and the BPF helper that outputs to it: kernel/bpf/arraymap.c and
// kernel/trace/bpf_trace.c at v6.18.

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/types.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/sample.h"

namespace perfring::kernel {

// The map. Threads: no output may run while another thread changes the map.
class bpf_array {
 public:
  // flags: BPF_F_PRESERVE_ELEMS or 0.
  explicit bpf_array(__u32 max_entries, __u32 flags = 0) : map_flags_{flags}, ptrs_(max_entries) {}

  __u32 max_entries() const noexcept { return static_cast<__u32>(ptrs_.size()); }
  perf_event* event_at(std::size_t index) const noexcept { return ptrs_[index].event.get(); }

 private:
  friend class bpf_map_file;
  struct bpf_event_entry {
    perf_file event;                               // the entry keeps the event alive
    const class bpf_map_file* map_file = nullptr;  // the file through which it was set
  };
  __u32 map_flags_;
  std::vector<bpf_event_entry> ptrs_;
};

// An open file of the map: a descriptor and its duplicates. The destructor is the last close, which
// removes the entries that were set through this file (K45).
class bpf_map_file {
 public:
  explicit bpf_map_file(std::shared_ptr<bpf_array> map) : map_{std::move(map)} {}
  ~bpf_map_file();
  bpf_map_file(const bpf_map_file&) = delete;
  bpf_map_file& operator=(const bpf_map_file&) = delete;

  bpf_array& map() const { return *map_; }

  // bpf(2), BPF_MAP_UPDATE_ELEM and BPF_MAP_DELETE_ELEM: return 0 or a negative errno (K44). A null
  // event stands for a descriptor that is closed, or that is not a perf event's.
  int update_elem(__u32 index, const perf_file& event, __u64 flags = BPF_ANY);
  int delete_elem(__u32 index);

 private:
  std::shared_ptr<bpf_array> map_;
};

// arraymap.c, perf_event_fd_array_release().
inline bpf_map_file::~bpf_map_file() {
  if ((map_->map_flags_ & BPF_F_PRESERVE_ELEMS) != 0) return;
  for (bpf_array::bpf_event_entry& entry : map_->ptrs_) {
    if (entry.map_file == this) entry = {};
  }
}

// arraymap.c, bpf_fd_array_map_update_elem().
inline int bpf_map_file::update_elem(__u32 index, const perf_file& event, __u64 flags) {
  if (flags != BPF_ANY) return -EINVAL;
  if (index >= map_->max_entries()) return -E2BIG;
  if (event == nullptr) return -EBADF;
  map_->ptrs_[index] = {event, this};
  return 0;
}

// arraymap.c, __fd_array_map_delete_elem().
inline int bpf_map_file::delete_elem(__u32 index) {
  if (index >= map_->max_entries()) return -E2BIG;
  if (map_->ptrs_[index].event == nullptr) return -ENOENT;
  map_->ptrs_[index] = {};
  return 0;
}

// bpf_trace.c, __bpf_perf_event_output().
template <Cpu C>
int output_to_entry(C& cpu, const bpf_array& map, __u64 flags, perf_sample_data& data,
                    std::span<const std::byte> payload) {
  __u64 index = flags & BPF_F_INDEX_MASK;
  if (index == BPF_F_CURRENT_CPU) index = static_cast<__u64>(cpu.id);
  if (index >= map.max_entries()) return -E2BIG;
  perf_event* const event = map.event_at(static_cast<std::size_t>(index));
  if (event == nullptr) return -ENOENT;
  const bool output =
      event->attr.type == PERF_TYPE_SOFTWARE && event->attr.config == PERF_COUNT_SW_BPF_OUTPUT;
  if (!output) return -EINVAL;
  if (event->oncpu != cpu.id) return -EOPNOTSUPP;
  perf_sample_save_raw_data(data, *event, payload);
  return perf_event_output(cpu, *event, data);
}

// The helper, called by a program on `cpu`. Returns 0 or a negative errno (K43). Up to three calls
// may be active on a CPU, each interrupting the previous one. A fourth gets -EBUSY.
template <Cpu C>
int bpf_perf_event_output(C& cpu, const bpf_array& map, __u64 flags,
                          std::span<const std::byte> payload) {
  constexpr int kNestLevels = 3;
  int error = -EBUSY;
  if (++cpu.bpf_trace_nest_level <= kNestLevels) {
    perf_sample_data data;
    error = (flags & ~__u64{BPF_F_INDEX_MASK}) != 0
                ? -EINVAL
                : output_to_entry(cpu, map, flags, data, payload);
  }
  --cpu.bpf_trace_nest_level;
  return error;
}

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_PERF_EVENT_ARRAY_H_
