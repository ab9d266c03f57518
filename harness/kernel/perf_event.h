#ifndef HARNESS_KERNEL_PERF_EVENT_H_
#define HARNESS_KERNEL_PERF_EVENT_H_

// Events and their rings as user space sets them up: perf_event_open(2), then mmap(2), ioctl(2),
// poll(2) and close(2) on its result, as in kernel/events/core.c at v6.18. Only the software event
// PERF_COUNT_SW_BPF_OUTPUT on one CPU, to which bpf_perf_event_output() writes.
//
// A shared_ptr<perf_event> is a reference to the event's open file. The caller's descriptor, the
// mapping and a map's entry each hold one, and the event lives as long as any of them (K33, K45).
//
// Threads: all outputs to a ring run on one thread. Other threads may call poll() and pause. Setup
// and teardown must not run during an output.

#include <linux/perf_event.h>
#include <linux/types.h>

#include <atomic>
#include <cstddef>
#include <expected>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "harness/kernel/cpu.h"

namespace perfring::kernel {

// The width of `unsigned long`, the type in which the kernel counts positions.
enum class Word { k32, k64 };

struct perf_event;

struct perf_buffer {
  Word word = Word::k64;
  bool before_5_2 = false;  // the ring of a kernel before 5.2: see perf_output_put_handle()
  unsigned page_shift = 12;
  std::size_t nr_pages = 0;  // data pages
  bool overwrite = false;
  __s64 watermark = 0;  // a long in the kernel

  // local_t, for this CPU only. All except `nest` are unsigned long.
  unsigned nest = 0;
  __u64 head = 0;
  __u64 lost = 0;
  __u64 wakeup = 0;
  __u64 events = 0;

  std::atomic<unsigned> poll{0};
  std::atomic<bool> paused{false};

  perf_event_mmap_page* user_page = nullptr;
  std::byte* data_pages = nullptr;
  unsigned mmap_count = 0;
  std::vector<perf_event*> event_list;  // events that write to this ring

  // Returns the value truncated to the width of an unsigned long.
  __u64 unsigned_long(__u64 value) const noexcept {
    return word == Word::k64 ? value : value & 0xffff'ffff;
  }
  __u64 data_size() const noexcept { return __u64{nr_pages} << page_shift; }
};

// A waiter on a wait queue, as in include/linux/wait.h.
class wait_queue_entry {
 public:
  virtual void wake() = 0;

 protected:
  ~wait_queue_entry() = default;
};

struct perf_event {
  perf_event_attr attr{};
  Word word = Word::k64;
  int cpu = 0;
  int oncpu = -1;  // the CPU on which the event counts, -1 while disabled
  bool dead = false;
  __u64 id = 0;
  __u16 header_size = 0;     // size of a sample's fields, except those in id_header_size
  __u16 id_header_size = 0;  // TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER
  std::atomic<perf_buffer*> rb{nullptr};
  std::shared_ptr<perf_buffer> rb_ref;
  unsigned mmap_count = 0;
  std::atomic<__u64> lost_samples{0};  // PERF_FORMAT_LOST
  std::vector<wait_queue_entry*> waitq;

  perf_event() = default;
  ~perf_event();
  perf_event(const perf_event&) = delete;
  perf_event& operator=(const perf_event&) = delete;
};

// The sample_type bits that are simulated.
inline constexpr __u64 kSampleTypes = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                      PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                      PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;

// Additionally PERF_SAMPLE_IP, which no script requests. No instruction is simulated, so it is 0.
inline constexpr __u64 kOpenedSampleTypes = kSampleTypes | PERF_SAMPLE_IP;

using perf_file = std::shared_ptr<perf_event>;

// The usual attributes: raw samples, and a wakeup every `watermark` bytes or, if `watermark` is 0,
// every `wakeup_events` records.
perf_event_attr bpf_output_attr(__u32 watermark, __u32 wakeup_events = 1);

// perf_event_open(attr, -1, cpu, -1, 0) in a kernel with an unsigned long of `word`. The kernel
// draws `id` from its own counter (perf_event_alloc() in core.c). Here the caller chooses it, so
// that runs are repeatable: not 0, and unique (K14). Returns -EINVAL on errors and for attributes
// that are not simulated.
std::expected<perf_file, int> perf_event_open(const perf_event_attr& attr, int cpu, __u64 id,
                                              Word word = Word::k64);

// One mapping of an event. The destructor is munmap().
class perf_mapping {
 public:
  perf_mapping(perf_mapping&& other) noexcept = default;
  perf_mapping& operator=(perf_mapping&& other) noexcept;
  ~perf_mapping();
  perf_buffer& rb() const { return *rb_; }

 private:
  friend std::expected<perf_mapping, int> perf_mmap(const perf_file&, std::span<std::byte>, bool,
                                                    unsigned);
  perf_mapping(perf_file event, std::shared_ptr<perf_buffer> rb)
      : event_{std::move(event)}, rb_{std::move(rb)} {}
  perf_file event_;
  std::shared_ptr<perf_buffer> rb_;
};

// Maps `memory`, which stands for the memory that the kernel would allocate: zeroed, one page
// followed by the data. It must outlive the mapping. A second mapping of the same ring must pass
// the same memory. If the first mapping is not `writable`, the ring overwrites (K39). Returns
// -EINVAL on errors (K35, K36).
std::expected<perf_mapping, int> perf_mmap(const perf_file& event, std::span<std::byte> memory,
                                           bool writable = true, unsigned page_shift = 12);

// Sets the ring to its state after `position` bytes (a multiple of 8) were written and read.
void start_at(perf_buffer& rb, __u64 position);

// ioctl(2): returns 0 or a negative errno.
void perf_event_enable(perf_event& event);
void perf_event_disable(perf_event& event);
int perf_event_pause_output(perf_event& event, bool pause);
int perf_event_set_output(perf_event& event, perf_event* output_event);

// Takes the event's CPU offline. The event stays dead afterwards (K34).
void perf_event_exit_cpu(perf_event& event);

// The event's part of poll(2): returns the ring's single flag and clears it (K26). EPOLLHUP if
// there is no ring.
unsigned perf_poll(perf_event& event);

// The interrupt that perf_output_wakeup() queues: wakes the waiters of every event that shares the
// ring.
void perf_pending_irq(perf_event& event);

// The fields of a sample, as in perf_prepare_sample() in core.c and perf_sample_save_raw_data() in
// include/linux/perf_event.h.
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
  // perf_prepare_sample() sets these for any sample_type.
  __u64 id;
  __u64 stream_id;
  struct {
    __u32 cpu, reserved;
  } cpu_entry;
};

// Chooses a raw size that makes the record a multiple of 8 bytes long (K1).
inline void perf_sample_save_raw_data(perf_sample_data& data, const perf_event& event,
                                      std::span<const std::byte> bytes) {
  if ((event.attr.sample_type & PERF_SAMPLE_RAW) == 0) return;
  const auto sum = static_cast<__u32>(bytes.size());
  const __u32 size = (sum + static_cast<__u32>(sizeof(__u32)) + 7) & ~__u32{7};
  data.raw = {bytes, size - static_cast<__u32>(sizeof(__u32)), 0};
  data.raw.pad = data.raw.size - sum;
  data.dyn_size += size;
}

// Reads TIME here, before the reservation (K22).
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
  // The u16 wraps without a check (K6).
  return {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, static_cast<__u16>(size)};
}

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_PERF_EVENT_H_
