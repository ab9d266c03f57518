#ifndef PERFRING_PERF_BUFFER_H_
#define PERFRING_PERF_BUFFER_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <type_traits>
#include <utility>

#include "perfring/export.h"
#include "perfring/output_event.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/ring/callback.h"
#include "perfring/ring/ring.h"

namespace perfring {

// The size of a ring, and when the kernel makes fd() readable. The defaults are aya's.
struct PerfBufferOptions {
  // Data pages of the ring: a power of two, at most 2 GiB in total; otherwise open fails with
  // InvalidPageCount. The kernel fills all but 8 bytes.
  std::size_t page_count = 2;
  // 0: the kernel announces every record, which costs the writer about 10 us each time. Otherwise
  // it announces once more than this many bytes have been written since the last time. It does not
  // announce fewer bytes, nor a full ring, so poll with a timeout. A value above the ring's size
  // means the ring's size.
  std::uint32_t wakeup_watermark = 0;
};

namespace internal {

// Converts an integer to a page count. A negative one, or one that size_t cannot hold, becomes the
// largest size_t, which is not a power of two.
template <std::integral N>
constexpr std::size_t page_count(N number) noexcept {
  const auto count = static_cast<std::size_t>(number);
  const bool is_negative = std::is_signed_v<N> && number < N{};
  return is_negative || static_cast<N>(count) != number ? static_cast<std::size_t>(-1) : count;
}

// Takes {true} and {true, 4096}, which would otherwise be converted to PerfBufferOptions.
struct BoolAsPageCount {
  struct Bool {
    template <std::same_as<bool> B>
    constexpr Bool(B) noexcept {}
  };
  Bool page_count;
  std::uint32_t wakeup_watermark = 0;
};

}  // namespace internal

// One CPU's software BPF_OUTPUT event, its mapping and its ring. bpf_perf_event_output() writes to
// that ring once the event is in the map that the BPF program names (see PerfEventArray). Mirrors
// aya's PerfBuffer. It has one rule in addition to those of a drain (ring/ring.h):
//
//   S7  The event is a software one, BPF_OUTPUT, on one CPU, of all processes, close-on-exec:
//       sample_type RAW, sample_period 1, wakeup_events 1 unless there is a watermark. The mapping
//       is shared, for reading and writing: a control page, then the ring, a power of two of data
//       pages, by default 2. Then the event is enabled.
//
// A Lost counts the records that found no room, and precedes the next record that finds room. To
// learn how many were lost after the last record, drain the ring and let the program output once
// more; or use a RingSet: its lost() asks the kernel, by an attribute (read_format) that aya's
// event does not have.
//
// Units: page counts are data pages of the machine's page size; watermarks are in bytes.
// Lifetime: move-only. Destroying it disables the event, unmaps the ring and closes the event.
// Events borrow from the ring until the callback returns. A callback must not move, assign to or
// destroy the buffer from which it is called.
// fork(2): the ring stays with the process that opened it. In a forked child, readable() and the
// drains end the program with an assertion; compiled with NDEBUG they are undefined, because they
// read and write whatever the child has mapped at the ring's address by then. Destroying the
// child's copy only closes its descriptor. Until then, or until the child calls exec, that
// descriptor keeps the parent's event and, for a PerfEventArrayBuffer, its entry. A child is
// recognized by its process id: a child with its parent's number, possible for process 1 of a new
// pid namespace, is taken for the parent.
// Threads: one at a time, not always the same one.
// Errors: only open fails; drains do not. If memory runs out, open throws std::bad_alloc.
// Kernel: kernel/events/core.c: perf_mmap() and perf_poll() at v6.18; aya/src/maps/perf.
class PERFRING_EXPORT PerfBuffer {
 public:
  // Opens the event on `cpu`, for all processes, with the ring that `options` describe, and enables
  // it (S7). `{}` and `{64}` are options, too. C++ converts `cpu` silently: 2^32 becomes 0, and -1
  // a CPU that does not exist.
  // Errors: InvalidPageCount before any system call; OpenError with EINVAL or ENODEV for a CPU that
  // is not online, whatever its number, with EACCES or EPERM without CAP_PERFMON; MMapError;
  // PerfEventEnableError.
  static std::expected<PerfBuffer, PerfBufferError> open(std::uint32_t cpu,
                                                         const PerfBufferOptions& options = {});
  // The same with this many data pages. Takes any integer type but bool. A negative number, or one
  // that size_t cannot hold, is an InvalidPageCount (of the largest size_t).
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  static std::expected<PerfBuffer, PerfBufferError> open(std::uint32_t cpu, N page_count) {
    return open(cpu, PerfBufferOptions{.page_count = internal::page_count(page_count)});
  }
  static void open(std::uint32_t cpu, internal::BoolAsPageCount) = delete;

  // A moved-from buffer stays empty, and its fd is -1. Self-assignment changes nothing.
  PerfBuffer(PerfBuffer&& other) noexcept;
  PerfBuffer& operator=(PerfBuffer&& other) noexcept;
  ~PerfBuffer();

  // Ring's readable() and drains: ring/ring.h says what f receives, may return and may do. Inlined
  // like Ring's, so that what f counts can stay in registers.
  bool readable() const { return ring().readable(); }
  // Like Ring::try_fold().
  template <class C, class F>
  [[gnu::always_inline]] auto try_fold(C init, F&& f) {
    return ring().try_fold(std::move(init), std::forward<F>(f));
  }
  // Like Ring::fold().
  template <class C, class F>
  [[nodiscard]] [[gnu::always_inline]] C fold(C init, F&& f) {
    return ring().fold(std::move(init), std::forward<F>(f));
  }
  // Like Ring::for_each().
  template <internal::EventCallback<void> F>
  [[gnu::always_inline]] void for_each(F&& f) {
    ring().for_each(std::forward<F>(f));
  }
  // Like Ring::for_each_while().
  template <internal::EventCallback<bool> F>
  [[gnu::always_inline]] bool for_each_while(F&& f) {
    return ring().for_each_while(std::forward<F>(f));
  }

  // The event's descriptor, to poll; -1 if moved from. This object owns it. Readiness is
  // edge-triggered: any poll clears it, whether or not the ring was drained (kernel/events/core.c:
  // perf_poll() at v6.18). So drain after registering the fd with epoll, drain everything after
  // each report, and wait with a timeout.
  int fd() const noexcept { return event_.fd(); }

 private:
  PERFRING_HIDDEN PerfBuffer(internal::OutputEvent event, const Ring<>& ring) noexcept;

  Ring<>& ring() {
    assert(is_usable() && "a forked child has no mapping of the ring");
    return ring_;
  }
  const Ring<>& ring() const {
    assert(is_usable() && "a forked child has no mapping of the ring");
    return ring_;
  }
  // Whether this process opened the event, or the buffer is empty.
  bool is_usable() const noexcept;

  internal::OutputEvent event_;
  Ring<> ring_;
};

}  // namespace perfring

#endif
#endif  // PERFRING_PERF_BUFFER_H_
