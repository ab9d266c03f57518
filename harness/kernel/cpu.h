#ifndef HARNESS_KERNEL_CPU_H_
#define HARNESS_KERNEL_CPU_H_

#include <linux/perf_event.h>
#include <linux/types.h>
#include <time.h>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <ctime>

// ThreadSanitizer does not model fences. An annotation tells it what each fence orders.
#if defined(__SANITIZE_THREAD__)
#define KERNEL_TSAN(call) call
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KERNEL_TSAN(call) call
#endif
#endif
#ifdef KERNEL_TSAN
#include <sanitizer/tsan_interface.h>
#else
#define KERNEL_TSAN(call)
#endif

namespace perfring::kernel {

struct perf_buffer;
struct perf_event;

// The processor on which the simulated kernel runs: how it accesses shared memory, where an
// interrupt can come, what time it is. Every simulated kernel function takes a Cpu. A faulty kernel
// is a Cpu that does one of these things wrong.
template <class C>
concept Cpu = requires(C& cpu, __u64& data_head, const __u64& data_tail, std::byte* to,
                       const void* from, std::size_t size, perf_buffer& rb, perf_event& event) {
  // smp_processor_id(), and the task that runs on this CPU.
  { cpu.id } -> std::convertible_to<int>;
  { cpu.pid } -> std::convertible_to<__u32>;
  { cpu.tid } -> std::convertible_to<__u32>;
  // The number of bpf_perf_event_output() calls active on this CPU, each interrupting the previous
  // one.
  { cpu.bpf_trace_nest_level } -> std::same_as<int&>;
  { cpu.clock() } -> std::same_as<__u64>;

  // Called between any two accesses to a buffer. An interrupt can come here and run a whole output.
  cpu.step();

  { cpu.read_once(data_tail) } -> std::same_as<__u64>;
  // Barrier A: orders the read of data_tail before the stores that depend on it.
  cpu.control_dependency(data_tail);
  cpu.copy(to, from, size);
  // Barrier B: between the record and data_head.
  cpu.smp_wmb(data_head);
  cpu.write_once(data_head, __u64{});

  // Queues a call of perf_pending_irq(event) from an interrupt, soon.
  cpu.irq_work_queue(event);

  // Tracepoints, for the ledger. No interrupt can come between a tracepoint and the change that it
  // reports.
  // `size` bytes were reserved from `position` on, including the bytes of a LOST.
  cpu.on_reserve(rb, __u64{} /* position */, size);
  // rb->lost was taken, for the LOST that is written next.
  cpu.on_lost_record(rb, __u64{} /* lost */);
  // An output was refused and counted in rb->lost.
  cpu.on_drop(rb, event);
};

// The host's processor: ordinary stores, and the host's fences. Meant as a base class.
struct HardwareCpu {
  int id = 0;
  __u32 pid = 0;
  __u32 tid = 0;
  int bpf_trace_nest_level = 0;

  __u64 clock() const noexcept {
    std::timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<__u64>(now.tv_sec) * 1'000'000'000 + static_cast<__u64>(now.tv_nsec);
  }

  void step() noexcept {}

  __u64 read_once(const __u64& field) const noexcept {
    if constexpr (sizeof(long) == sizeof(__u64)) {
      return __atomic_load_n(&field, __ATOMIC_RELAXED);
    } else {
      return *const_cast<const volatile __u64*>(&field);  // two 32-bit loads, as in a 32-bit kernel
    }
  }

  // The processor does not move a store that depends on a load before the load. The compiler must
  // not move it either: local_cmpxchg() implies barrier().
  void control_dependency([[maybe_unused]] const __u64& field) noexcept {
    asm volatile("" ::: "memory");
    KERNEL_TSAN(__tsan_acquire(const_cast<__u64*>(&field)));
  }

  void copy(std::byte* to, const void* from, std::size_t size) noexcept {
    std::memcpy(to, from, size);
  }

  // A release fence is the closest fence in C++.
  void smp_wmb([[maybe_unused]] const __u64& field) noexcept {
    __atomic_thread_fence(__ATOMIC_RELEASE);
    KERNEL_TSAN(__tsan_release(const_cast<__u64*>(&field)));
  }

  void write_once(__u64& field, __u64 value) noexcept {
    if constexpr (sizeof(long) == sizeof(__u64)) {
      __atomic_store_n(&field, value, __ATOMIC_RELAXED);
    } else {
      *const_cast<volatile __u64*>(&field) = value;
    }
  }

  void irq_work_queue(perf_event& event);

  void on_reserve(const perf_buffer&, __u64, std::size_t) noexcept {}
  void on_lost_record(const perf_buffer&, __u64) noexcept {}
  void on_drop(const perf_buffer&, const perf_event&) noexcept {}
};

}  // namespace perfring::kernel

#undef KERNEL_TSAN

#endif  // HARNESS_KERNEL_CPU_H_
