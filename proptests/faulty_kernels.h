#ifndef PROPTESTS_FAULTY_KERNELS_H_
#define PROPTESTS_FAULTY_KERNELS_H_

// Simulated kernels that do one thing wrong, each by a Cpu that does it. The properties must find
// them out.

#include <sys/epoll.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "proptests/watch.h"

namespace perfring::proptests {

// Without barrier B: the record's bytes come after data_head.
struct PublishesEarly : WatchedCpu {
  void step() {
    WatchedCpu::step();
    if (!std::exchange(published, false)) return;
    for (const auto& [to, bytes] : std::exchange(stores, {})) {
      std::memcpy(to, bytes.data(), bytes.size());
    }
  }
  void copy(std::byte* to, const void* from, std::size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    stores.emplace_back(to, std::vector<std::byte>{bytes, bytes + size});
  }
  void write_once(__u64& field, __u64 value) {
    WatchedCpu::write_once(field, value);
    published = true;
  }

  bool published = false;
  std::vector<std::pair<std::byte*, std::vector<std::byte>>> stores;
};

// Moves data_head past a record before the store that publishes it.
struct ShowsTheUnpublished : WatchedCpu {
  void reserved(const kernel::perf_buffer& buffer, __u64 position, std::size_t size) {
    WatchedCpu::reserved(buffer, position, size);
    rb = &buffer;
  }
  void step() {
    if (rb != nullptr) HardwareCpu::write_once(rb->user_page->data_head, rb->head);
    WatchedCpu::step();
  }

  const kernel::perf_buffer* rb = nullptr;
};

// Takes everything published for consumed.
struct OverwritesTheUnread : WatchedCpu {
  void write_once(__u64& field, __u64 value) {
    WatchedCpu::write_once(field, value);
    head = value;
  }
  __u64 read_once(const __u64& field) const { return head.value_or(WatchedCpu::read_once(field)); }

  std::optional<__u64> head;
};

// Takes data_tail for 8 bytes more than it is: an empty ring seems full.
struct MisjudgesRoom : WatchedCpu {
  __u64 read_once(const __u64& field) const { return WatchedCpu::read_once(field) + 8; }
};

// Tells of one loss more in a LOST.
struct Miscounts : WatchedCpu {
  void copy(std::byte* to, const void* from, std::size_t size) {
    WatchedCpu::copy(to, from, size);
    kernel::lost_event lost;
    if (size != sizeof(lost)) return;
    std::memcpy(&lost, from, sizeof(lost));
    if (lost.header.type != PERF_RECORD_LOST) return;
    ++lost.lost;
    std::memcpy(to, &lost, sizeof(lost));
  }
};

// Publishes where the payload ends, not where the record does.
struct PublishesOffTheGrid : WatchedCpu {
  void write_once(__u64& field, __u64 value) { WatchedCpu::write_once(field, value - 4); }
};

// Writes a raw size that goes with header.size, where K6 says that it does not.
struct TruncatesRaw : WatchedCpu {
  void copy(std::byte* to, const void* from, std::size_t size) {
    WatchedCpu::copy(to, from, size);
    __u32 raw;
    if (size != sizeof(raw)) return;
    std::memcpy(&raw, from, sizeof(raw));
    if (raw <= 65516) return;
    raw = (raw + 12) % 65536 - 12;
    std::memcpy(to, &raw, sizeof(raw));
  }
};

// Sets the flag, and wakes nobody.
struct WakesNobody : WatchedCpu {
  void irq_work_queue(kernel::perf_event&) {}
};

// Sets the flag and wakes when the next record is published.
struct WakesOneLate : WatchedCpu {
  void write_once(__u64& field, __u64 value) {
    WatchedCpu::write_once(field, value);
    kernel::perf_event* const event = std::exchange(late, nullptr);
    if (event == nullptr) return;
    event->rb.load()->poll.store(EPOLLIN | EPOLLRDNORM);
    WatchedCpu::irq_work_queue(*event);
  }
  void irq_work_queue(kernel::perf_event& event) {
    event.rb.load()->poll.store(0);
    late = &event;
  }

  kernel::perf_event* late = nullptr;
};

}  // namespace perfring::proptests

#endif  // PROPTESTS_FAULTY_KERNELS_H_
