#ifndef HARNESS_KERNEL_NESTING_CPU_H_
#define HARNESS_KERNEL_NESTING_CPU_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "harness/kernel/testing.h"

namespace perfring::kernel {

inline constexpr std::size_t kLevels = 3;
inline constexpr unsigned kNever = ~0U;
// The step between the two lines of perf_output_get_handle().
inline constexpr unsigned kForgetful = 2;

// Each level's output is interrupted once, at its step number `at`, by the next level's. Records
// every tracepoint.
struct NestingCpu : TestCpu {
  std::array<unsigned, kLevels> at{kNever, kNever, kNever};
  unsigned again = kNever;  // at this step of the outermost, the third output comes, too
  std::array<unsigned, kLevels> steps{};
  std::function<void(std::size_t level)> interrupt;
  std::function<void()> barrier;
  std::function<void(__u64 head)> published;

  struct Reservation {
    __u64 position, size;
    std::optional<__u64> lost;  // the count of its LOST, if it has one
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
  // The last reservation at this level is meant: the outputs that interrupted it have ended.
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

#endif  // HARNESS_KERNEL_NESTING_CPU_H_
