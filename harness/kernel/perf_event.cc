#include "harness/kernel/perf_event.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace perfring::kernel {
namespace {

unsigned count(__u64 sample_type, __u64 fields) {
  return static_cast<unsigned>(__builtin_popcountll(sample_type & fields));
}

// event->clock is a function in the kernel. Without use_clockid, clockid has no effect.
bool same_clock(const perf_event& a, const perf_event& b) {
  if (a.attr.use_clockid != b.attr.use_clockid) return false;
  return a.attr.use_clockid == 0 || a.attr.clockid == b.attr.clockid;
}

void wake_up_all(const perf_event& event) {
  for (wait_queue_entry* const entry : event.waitq) entry->wake();
}

// core.c, ring_buffer_attach().
void ring_buffer_attach(perf_event& event, std::shared_ptr<perf_buffer> rb) {
  const bool had_one = event.rb_ref != nullptr;
  if (had_one) std::erase(event.rb_ref->event_list, &event);
  if (rb != nullptr) rb->event_list.insert(rb->event_list.begin(), &event);  // list_add_rcu()
  event.rb.store(rb.get());
  event.rb_ref = std::move(rb);
  // A waiter on the old ring could have missed a wakeup of the new ring.
  if (had_one) wake_up_all(event);
}

// core.c, ring_buffer_init(). `watermark` is a long: a 32-bit kernel takes 2^31 as negative (K30).
void ring_buffer_init(perf_buffer& rb, __u32 watermark, bool writable) {
  const __s64 max_size = static_cast<__s64>(rb.data_size());
  const __s64 wanted =
      rb.word == Word::k64 ? __s64{watermark} : __s64{static_cast<__s32>(watermark)};
  rb.watermark = std::min(max_size, wanted);
  if (rb.watermark == 0) rb.watermark = max_size / 2;
  rb.overwrite = !writable;
  if (rb.nr_pages == 0) rb.paused = true;
}

// core.c, perf_event_init_userpage().
void perf_event_init_userpage(perf_buffer& rb) {
  perf_event_mmap_page& page = *rb.user_page;
  page.cap_bit0_is_deprecated = 1;
  page.size = offsetof(perf_event_mmap_page, __reserved);
  page.data_offset = __u64{1} << rb.page_shift;
  page.data_size = rb.data_size();
}

std::shared_ptr<perf_buffer> rb_alloc(const perf_event& event, std::span<std::byte> memory,
                                      bool writable, unsigned page_shift) {
  auto rb = std::make_shared<perf_buffer>();
  rb->word = event.word;
  rb->page_shift = page_shift;
  rb->nr_pages = (memory.size() >> page_shift) - 1;
  rb->user_page = reinterpret_cast<perf_event_mmap_page*>(memory.data());
  rb->data_pages = memory.data() + (std::size_t{1} << page_shift);
  ring_buffer_init(*rb, event.attr.watermark != 0 ? event.attr.wakeup_watermark : 0, writable);
  perf_event_init_userpage(*rb);
  return rb;
}

}  // namespace

perf_event::~perf_event() {
  if (rb_ref != nullptr) std::erase(rb_ref->event_list, this);
}

perf_event_attr bpf_output_attr(__u32 watermark, __u32 wakeup_events) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_type = PERF_SAMPLE_RAW;
  attr.sample_period = 1;
  attr.watermark = watermark != 0;
  if (watermark != 0) {
    attr.wakeup_watermark = watermark;
  } else {
    attr.wakeup_events = wakeup_events;
  }
  return attr;
}

std::expected<perf_file, int> perf_event_open(const perf_event_attr& attr, int cpu, __u64 id,
                                              Word word) {
  const bool simulated = attr.type == PERF_TYPE_SOFTWARE &&
                         attr.config == PERF_COUNT_SW_BPF_OUTPUT && cpu >= 0 &&
                         (attr.sample_type & ~kOpenedSampleTypes) == 0;
  if (!simulated) return std::unexpected(-EINVAL);
  auto event = std::make_shared<perf_event>();
  event->attr = attr;
  event->word = word;
  event->cpu = cpu;
  event->oncpu = attr.disabled != 0 ? -1 : cpu;
  event->id = id;
  // core.c, __perf_event_header_size() and perf_event__id_header_size(): each field is 8 bytes.
  event->header_size = static_cast<__u16>(
      8 * count(attr.sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD));
  event->id_header_size =
      static_cast<__u16>(8 * count(attr.sample_type, PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                                         PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                                         PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
  return event;
}

// core.c, perf_mmap().
std::expected<perf_mapping, int> perf_mmap(const perf_file& event, std::span<std::byte> memory,
                                           bool writable, unsigned page_shift) {
  const std::size_t pages = memory.size() >> page_shift;
  const bool whole = pages << page_shift == memory.size() && pages != 0;
  if (!whole || ((pages - 1) & (pages - 2)) != 0) return std::unexpected(-EINVAL);
  std::shared_ptr<perf_buffer> rb = event->rb_ref;
  if (rb != nullptr) {
    const bool same =
        rb->nr_pages == pages - 1 && reinterpret_cast<std::byte*>(rb->user_page) == memory.data();
    if (!same) return std::unexpected(-EINVAL);
  } else {
    rb = rb_alloc(*event, memory, writable, page_shift);
    ring_buffer_attach(*event, rb);
  }
  ++rb->mmap_count;
  ++event->mmap_count;
  return perf_mapping{event, std::move(rb)};
}

perf_mapping& perf_mapping::operator=(perf_mapping&& other) noexcept {
  perf_mapping old{std::move(*this)};
  event_ = std::move(other.event_);
  rb_ = std::move(other.rb_);
  return *this;
}

// core.c, perf_mmap_close().
perf_mapping::~perf_mapping() {
  if (event_ == nullptr) return;
  --rb_->mmap_count;
  if (--event_->mmap_count != 0) return;
  ring_buffer_attach(*event_, nullptr);
  if (rb_->mmap_count != 0) return;
  // No mapping is left: events that were redirected to this ring lose it too.
  while (!rb_->event_list.empty()) ring_buffer_attach(*rb_->event_list.front(), nullptr);
}

void start_at(perf_buffer& rb, __u64 position) {
  rb.head = rb.unsigned_long(position);
  rb.wakeup = rb.head;
  rb.user_page->data_head = rb.head;
  rb.user_page->data_tail = position;
}

void perf_event_enable(perf_event& event) {
  if (!event.dead) event.oncpu = event.cpu;
}

void perf_event_disable(perf_event& event) {
  event.oncpu = -1;
}

// internal.h, rb_toggle_paused(); core.c, _perf_ioctl().
int perf_event_pause_output(perf_event& event, bool pause) {
  perf_buffer* const rb = event.rb.load();
  if (rb == nullptr || rb->nr_pages == 0) return -EINVAL;
  rb->paused.store(pause);
  return 0;
}

int perf_event_set_output(perf_event& event, perf_event* output_event) {
  if (output_event != nullptr) {
    const bool fits = output_event != &event && output_event->cpu == event.cpu &&
                      same_clock(*output_event, event) &&
                      output_event->attr.write_backward == event.attr.write_backward;
    if (!fits) return -EINVAL;
  }
  if (event.mmap_count != 0) return -EINVAL;
  if (output_event != nullptr && output_event->rb_ref == nullptr) return -EINVAL;
  ring_buffer_attach(event, output_event != nullptr ? output_event->rb_ref : nullptr);
  return 0;
}

void perf_event_exit_cpu(perf_event& event) {
  event.dead = true;
  event.oncpu = -1;
}

unsigned perf_poll(perf_event& event) {
  perf_buffer* const rb = event.rb.load();
  return rb == nullptr ? unsigned{EPOLLHUP} : rb->poll.exchange(0);
}

// core.c, ring_buffer_wakeup().
void perf_pending_irq(perf_event& event) {
  const perf_buffer* const rb = event.rb.load();
  if (rb == nullptr) return;
  for (const perf_event* const sharing : rb->event_list) wake_up_all(*sharing);
}

}  // namespace perfring::kernel
