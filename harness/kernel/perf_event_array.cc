#include "harness/kernel/perf_event_array.h"

#include <cerrno>

namespace perfring::kernel {

// arraymap.c, perf_event_fd_array_release().
bpf_map_file::~bpf_map_file() {
  if ((map_->map_flags_ & BPF_F_PRESERVE_ELEMS) != 0) return;
  for (bpf_array::bpf_event_entry& entry : map_->ptrs_) {
    if (entry.map_file == this) entry = {};
  }
}

// arraymap.c, bpf_fd_array_map_update_elem().
int bpf_map_file::update_elem(__u32 index, const perf_file& event, __u64 flags) {
  if (flags != BPF_ANY) return -EINVAL;
  if (index >= map_->max_entries()) return -E2BIG;
  if (event == nullptr) return -EBADF;
  map_->ptrs_[index] = {event, this};
  return 0;
}

// arraymap.c, __fd_array_map_delete_elem().
int bpf_map_file::delete_elem(__u32 index) {
  if (index >= map_->max_entries()) return -E2BIG;
  if (map_->ptrs_[index].event == nullptr) return -ENOENT;
  map_->ptrs_[index] = {};
  return 0;
}

}  // namespace perfring::kernel
