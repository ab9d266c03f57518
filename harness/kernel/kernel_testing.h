#ifndef HARNESS_KERNEL_KERNEL_TESTING_H_
#define HARNESS_KERNEL_KERNEL_TESTING_H_

// For this folder's tests: a ring with an event and entry 0 of a map, and expected bytes.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"

namespace perfring::kernel {

inline constexpr std::size_t kPage = 4096;
inline constexpr unsigned kReadable = EPOLLIN | EPOLLRDNORM;

// CPU 3, process 77, thread 78, at a time that the test sets.
struct TestCpu : HardwareCpu {
  TestCpu() {
    id = 3;
    pid = 77;
    tid = 78;
  }
  __u64 time = 1000;
  __u64 clock() const { return time; }
};

inline perf_event_attr bpf_output(__u64 sample_type = PERF_SAMPLE_RAW) {
  perf_event_attr attr = bpf_output_attr(/*watermark=*/0);
  attr.sample_type = sample_type;
  return attr;
}

template <class T>
T must(std::expected<T, int> result) {
  if (!result) throw std::runtime_error("refused: " + std::to_string(result.error()));
  return *std::move(result);
}

struct RingSetup {
  perf_event_attr attr = bpf_output();
  std::size_t pages = 1;
  Word word = Word::k64;
  bool writable = true;
  unsigned page_shift = 12;
};

// Builds expected bytes field by field, in native byte order.
class Expected {
 public:
  Expected& u16(std::uint16_t value) { return put(value); }
  Expected& u32(std::uint32_t value) { return put(value); }
  Expected& u64(std::uint64_t value) { return put(value); }
  Expected& bytes(std::initializer_list<int> values) {
    for (const int value : values) bytes_.push_back(static_cast<std::byte>(value));
    return *this;
  }
  Expected& header(std::uint32_t type, std::uint16_t misc, std::uint16_t size) {
    return u32(type).u16(misc).u16(size);
  }
  operator std::vector<std::byte>() const { return bytes_; }  // NOLINT: implicit on purpose

 private:
  template <class T>
  Expected& put(T value) {
    // Push byte by byte: at -O3, g++ 12 warns about insert() as a write past the end.
    for (const std::byte byte : std::bit_cast<std::array<std::byte, sizeof value>>(value)) {
      bytes_.push_back(byte);
    }
    return *this;
  }
  std::vector<std::byte> bytes_;
};

// An event with id 7 on CPU 3, its ring filled with 0xee, and a map with the event as entry 0.
template <class C = TestCpu>
struct TestRing {
  explicit TestRing(const RingSetup& setup = {})
      : memory(((1 + setup.pages) << setup.page_shift) / sizeof(__u64)),
        event{must(perf_event_open(setup.attr, 3, 7, setup.word))},
        mapping{must(perf_mmap(event, bytes(), setup.writable, setup.page_shift))} {
    std::memset(rb().data_pages, 0xee, static_cast<std::size_t>(rb().data_size()));
    if (file.update_elem(0, event) != 0) throw std::runtime_error("update_elem");
  }

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span{memory}); }
  perf_buffer& rb() const { return mapping.rb(); }
  perf_event_mmap_page& page() const { return *rb().user_page; }
  std::uint64_t head() const { return page().data_head; }
  void tail(std::uint64_t value) { page().data_tail = value; }
  // Consumes all records.
  void consume() { tail(head()); }

  // Outputs a payload of this size: 1, 2, 3...
  int output(std::size_t size, __u64 flags = 0) {
    payload.resize(size);
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<std::byte>(i + 1);
    return bpf_perf_event_output(cpu, *map, flags, payload);
  }

  // Outputs until one is refused. Returns the number of accepted records.
  std::size_t fill(std::size_t size) {
    std::size_t accepted = 0;
    int error = 0;
    for (; (error = output(size)) == 0; ++accepted) {
    }
    if (error != -ENOSPC) throw std::runtime_error("output: " + std::to_string(error));
    return accepted;
  }

  // Returns `size` bytes of the ring from `position` on.
  std::vector<std::byte> at(std::uint64_t position, std::size_t size) const {
    std::vector<std::byte> found;
    for (std::size_t i = 0; i < size; ++i) {
      found.push_back(rb().data_pages[(position + i) % rb().data_size()]);
    }
    return found;
  }
  template <class T>
  T field(std::uint64_t position) const {
    const std::vector<std::byte> found = at(position, sizeof(T));
    T value;
    std::memcpy(&value, found.data(), sizeof(value));
    return value;
  }
  std::uint16_t size_at(std::uint64_t position) const { return field<std::uint16_t>(position + 6); }
  std::uint32_t raw_at(std::uint64_t position) const { return field<std::uint32_t>(position + 8); }

  C cpu;
  std::vector<__u64> memory;
  perf_file event;
  perf_mapping mapping;
  std::shared_ptr<bpf_array> map = std::make_shared<bpf_array>(8);
  bpf_map_file file{map};
  std::vector<std::byte> payload;
};

// For tests of eventpoll: the reports of a wait.

using Reports = std::vector<std::pair<__u64, __u32>>;  // data, events

inline Reports wait(eventpoll& epoll, std::size_t room = 8) {
  std::vector<epoll_event> ready(room + 1, epoll_event{.events = 0xdead, .data{.u64 = 0xdead}});
  const std::size_t count = epoll.wait(std::span{ready}.first(room));
  EXPECT_LE(count, room);
  EXPECT_EQ(ready[room].events, 0xdeadu);
  Reports reports;
  for (std::size_t i = 0; i < count; ++i) {
    const __u64 data = ready[i].data.u64;  // not aligned: epoll_event is packed
    reports.emplace_back(data, __u32{ready[i].events});
  }
  return reports;
}

inline const Reports kNothing;
inline Reports report(__u64 data, __u32 events = kReadable) {
  return {{data, events}};
}

inline constexpr std::size_t kLevels = 3;
inline constexpr unsigned kNever = ~0U;
// The step between the two lines of perf_output_get_handle(), where an interrupt's wakeup
// can be lost.
inline constexpr unsigned kLosesWakeup = 2;

// A Cpu on which the output of each level is interrupted once, at its step number `at`, by the
// output of the next level. Records every tracepoint.
struct NestingCpu : TestCpu {
  std::array<unsigned, kLevels> at{kNever, kNever, kNever};
  unsigned again = kNever;  // the third output also interrupts the outermost one at this step
  std::array<unsigned, kLevels> steps{};
  std::function<void(std::size_t level)> interrupt;
  std::function<void()> barrier;
  std::function<void(__u64 head)> published;

  struct Reservation {
    __u64 position, size;
    std::optional<__u64> lost;  // the count of its LOST, if it contains one
    int level;
  };
  std::vector<Reservation> reservations;
  unsigned refused = 0;
  bool allowed_to_store = false;
  unsigned wakeups = 0;

  void step() {
    const auto level = static_cast<std::size_t>(bpf_trace_nest_level - 1);
    const unsigned now = steps[level]++;
    if (now == at[level]) interrupt(level + 1);
    if (level == 0 && now == again) interrupt(2);
  }
  void control_dependency(const __u64& field) {
    allowed_to_store = true;
    TestCpu::control_dependency(field);
  }
  void copy(std::byte* to, const void* from, std::size_t size) {
    EXPECT_TRUE(allowed_to_store);  // A: data_tail was read before
    TestCpu::copy(to, from, size);
  }
  void smp_wmb(const __u64& field) {
    barrier();
    TestCpu::smp_wmb(field);
  }
  void write_once(__u64& field, __u64 value) {
    published(value);
    TestCpu::write_once(field, value);
  }
  void irq_work_queue(perf_event& event) {
    ++wakeups;
    TestCpu::irq_work_queue(event);
  }
  void on_reserve(const perf_buffer&, __u64 position, std::size_t size) {
    reservations.push_back({position, size, {}, bpf_trace_nest_level});
  }
  // The LOST belongs to the last reservation at this level: outputs that interrupted it have ended.
  void on_lost_record(const perf_buffer&, __u64 lost) {
    const auto own = std::ranges::find(reservations.rbegin(), reservations.rend(),
                                       bpf_trace_nest_level, &Reservation::level);
    ASSERT_NE(own, reservations.rend());
    EXPECT_FALSE(own->lost.has_value());
    own->lost = lost;
  }
  void on_drop(const perf_buffer&, const perf_event&) { ++refused; }
};

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_KERNEL_TESTING_H_
