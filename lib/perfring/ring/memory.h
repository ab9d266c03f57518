#ifndef PERFRING_RING_MEMORY_H_
#define PERFRING_RING_MEMORY_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// Memory: the only way in which Ring touches bytes that it shares with the kernel. A policy of
// five static functions, so that the same Ring runs on the hardware, under ThreadSanitizer and
// under a model checker. Each fence names the location that it orders: hardware ignores the name,
// the tools need it, and the reader learns what pairs with what.
//
// Units: positions are bytes, counted from when the ring was mapped.
// Lifetime: a policy has no state; what it reads and writes must stay mapped while it does.
// Threads: the consumer's, one at a time, beside the kernel or another producer.
// Errors: none; no function throws, allocates or calls the system.
//
//   kernel                                   user
//     if (READ_ONCE(data_tail) has room)       read_once(data_head)
//     (control dependency)   A                 fence_after_read_of(data_head)     C
//     write record                             read records
//     smp_wmb()              B                 fence_before_write_of(data_tail)   D
//     WRITE_ONCE(data_head)                    write_once(data_tail)
//
// B pairs with C: a record is whole before it is seen. A pairs with D: a record is finished with
// before it is overwritten. (kernel/events/ring_buffer.c at v6.18: perf_output_put_handle() has
// this picture, and asks user space for a full fence at D.)

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <linux/perf_event.h>

namespace perfring {

// The kernel's type of data_head and data_tail (`unsigned long long`, which is another type than
// std::uint64_t on LP64: the fields must not be reached through std::atomic<std::uint64_t>*).
using SharedPosition = decltype(perf_event_mmap_page::data_head);

// A position modulo 2^32. Rings are at most 2 GiB, so distances survive; a 32-bit kernel wraps
// its positions there; and a 32-bit process can load this much, and no more, untorn.
using Position = std::uint32_t;

template <class M>
concept Memory = requires(const SharedPosition& head, SharedPosition& tail, SharedPosition value,
                          const std::byte* address) {
  // The field modulo 2^32, in a single load (the kernel's READ_ONCE).
  { M::read_once(head) } -> std::same_as<Position>;
  // The field whole; its low 32 bits in a single store (the kernel's WRITE_ONCE).
  { M::write_once(tail, value) } -> std::same_as<void>;
  // C: later reads happen after the read of `head` just done. At least an acquire fence.
  { M::fence_after_read_of(head) } -> std::same_as<void>;
  // D: earlier reads happen before the write of `tail` that follows. A full fence.
  { M::fence_before_write_of(tail) } -> std::same_as<void>;
  // A T at an address that is aligned for it, loaded once: the compiler can neither repeat the
  // load nor take it back (the bytes may change underneath). T is u32 or u64.
  { M::template read<std::uint32_t>(address) } -> std::same_as<std::uint32_t>;
  { M::template read<std::uint64_t>(address) } -> std::same_as<std::uint64_t>;
};

}  // namespace perfring

#endif
#endif  // PERFRING_RING_MEMORY_H_
