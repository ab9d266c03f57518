#ifndef PERFRING_RING_MEMORY_H_
#define PERFRING_RING_MEMORY_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// Memory: the policy through which Ring accesses all bytes that it shares with the kernel. A policy
// has five static functions, so that the same Ring runs on the hardware, under ThreadSanitizer and
// under a model checker. Each fence names the location that it orders: the hardware ignores the
// name, the tools need it, and it shows the reader which fences pair.
//
// Units: positions are in bytes, counted from the mapping of the ring.
// Lifetime: a policy has no state. The memory that it accesses must be mapped.
// Threads: the consumer calls it, from one thread at a time, while the kernel or another producer
// writes.
// Errors: none; no function throws, allocates or makes a system call.
//
//   kernel                                   user
//     if (READ_ONCE(data_tail) has room)       read_once(data_head)
//     (control dependency)   A                 fence_after_read_of(data_head)     C
//     write record                             read records
//     smp_wmb()              B                 fence_before_write_of(data_tail)   D
//     WRITE_ONCE(data_head)                    write_once(data_tail)
//
// B pairs with C: a record is complete before the consumer sees it. A pairs with D: the consumer
// has finished with a record before the kernel overwrites it. (kernel/events/ring_buffer.c at
// v6.18: perf_output_put_handle() has this picture, and asks user space for a full fence at D.)

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <linux/perf_event.h>

namespace perfring {

// The kernel's type of data_head and data_tail: `unsigned long long`, which on LP64 is a different
// type from std::uint64_t. Do not access the fields through a std::atomic<std::uint64_t>*.
using SharedPosition = decltype(perf_event_mmap_page::data_head);

// A position modulo 2^32. A ring is at most 2 GiB, so 32 bits suffice for distances; a 32-bit
// kernel wraps its positions there; and a 32-bit process cannot load more without tearing.
using Position = std::uint32_t;

template <class M>
concept Memory = requires(const SharedPosition& head, SharedPosition& tail, SharedPosition value,
                          const std::byte* address) {
  // Loads the field modulo 2^32, in a single load (the kernel's READ_ONCE).
  { M::read_once(head) } -> std::same_as<Position>;
  // Stores the whole field; its low 32 bits in a single store (the kernel's WRITE_ONCE).
  { M::write_once(tail, value) } -> std::same_as<void>;
  // C: orders later reads after the preceding read of `head`. At least an acquire fence.
  { M::fence_after_read_of(head) } -> std::same_as<void>;
  // D: orders earlier reads before the following write of `tail`. A full fence.
  { M::fence_before_write_of(tail) } -> std::same_as<void>;
  // Loads a T, which is u32 or u64, from an address that is aligned for it. The bytes may change
  // meanwhile, so the compiler must neither repeat nor omit the load.
  { M::template read<std::uint32_t>(address) } -> std::same_as<std::uint32_t>;
  { M::template read<std::uint64_t>(address) } -> std::same_as<std::uint64_t>;
};

}  // namespace perfring

#endif
#endif  // PERFRING_RING_MEMORY_H_
