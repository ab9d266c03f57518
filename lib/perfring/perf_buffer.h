#ifndef PERFRING_PERF_BUFFER_H_
#define PERFRING_PERF_BUFFER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/ring/ring.h"

namespace perfring {

// When the kernel makes fd() readable. The defaults are aya's.
struct PerfBufferOptions {
  // Data pages of the ring: a power of two, at most 2 GiB in all. The kernel fills all but 8 bytes.
  std::size_t page_count = 2;
  // 0: after every record, which costs the writer about 10 us each time. Else after more than
  // this many bytes have been written since the last time; the kernel does not
  // announce fewer bytes than that, nor a full ring, so poll with a timeout. More than the ring's
  // size is taken as its size.
  std::uint32_t wakeup_watermark = 0;
};

// One CPU's software BPF_OUTPUT event, its mapping and its ring: what bpf_perf_event_output()
// writes to, once the event is in the map that the program names (see PerfEventArray). Mirrors
// aya's PerfBuffer.
//
// Lifetime: move-only. Destroying it disables the event, unmaps the ring and closes the event.
// Events borrow from the ring until the callback returns.
// fork(2): the ring stays with the process that opened it. In a forked child, readable() and the
// drains end in SIGSEGV, and destroying the child's copy only closes its descriptor; until then,
// or until it calls exec, that keeps the parent's event and, for a PerfEventArrayBuffer, its entry.
// Threads: one at a time.
// Errors: open alone fails; drains do not.
class PERFRING_EXPORT PerfBuffer {
 public:
  // Opens the event on `cpu`, for all processes, with a ring of `page_count` data pages, and
  // enables it (S7).
  static std::expected<PerfBuffer, PerfBufferError> open(std::uint32_t cpu,
                                                         std::size_t page_count = 2);
  static std::expected<PerfBuffer, PerfBufferError> open(std::uint32_t cpu,
                                                         const PerfBufferOptions& options);

  // Moved from, a buffer is empty for ever and its fd is -1.
  PerfBuffer(PerfBuffer&& other) noexcept;
  PerfBuffer& operator=(PerfBuffer&& other) noexcept;
  ~PerfBuffer();

  // The drains of Ring (ring/ring.h says what f is passed, may return and may do). Inlined like
  // those, so that what f counts can stay in registers.
  bool readable() const { return ring_.readable(); }
  template <class C, class F>
  [[gnu::always_inline]] auto try_fold(C init, F&& f) {
    return ring_.try_fold(std::move(init), std::forward<F>(f));
  }
  template <class C, class F>
  [[nodiscard]] [[gnu::always_inline]] C fold(C init, F&& f) {
    return ring_.fold(std::move(init), std::forward<F>(f));
  }
  template <class F>
  [[gnu::always_inline]] void for_each(F&& f) {
    ring_.for_each(std::forward<F>(f));
  }

  // The event, to poll. Readiness is one flag that any poll takes away, whether or not the ring
  // was drained (kernel/events/core.c: perf_poll() at v6.18): drain after registering the fd with
  // epoll, drain all there is after each report, and wait with a timeout.
  int fd() const noexcept { return event_.get(); }

 private:
  PERFRING_HIDDEN PerfBuffer(os::Fd event, os::Mapping mapping, Ring<> ring) noexcept;

  os::Fd event_;  // destroyed last: closed after the unmapping
  os::Mapping mapping_;
  Ring<> ring_;
  pid_t opener_;  // in any other process, the event is that one's to stop
};

}  // namespace perfring

#endif  // PERFRING_PERF_BUFFER_H_
