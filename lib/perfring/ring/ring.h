#ifndef PERFRING_RING_RING_H_
#define PERFRING_RING_RING_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// Ring<Memory>: the consumer of one perf ring, over a control page and data that the caller has
// mapped. Mirrors the drain of aya's PerfBuffer (UPSTREAM.md). S1 to S11 are its rules:
//
//   S1  data_head is read once, when a drain starts. Records that arrive later wait for the next
//       drain.
//   S2  data_tail is written once, when a drain ends, if the drain consumed anything, even if the
//       callback breaks or throws. An acquire fence follows the read, a full fence precedes the
//       write (memory.h).
//   S3  The event on which the callback breaks or throws counts as consumed.
//   S4  A Sample is two slices of the ring that hold raw-size bytes, padding included.
//   S5  A Lost is its record's count, which follows the id.
//   S6  readable() returns true if data_head and data_tail differ, except in the case of S11.
//   S8  A record that breaks the kernel's contract becomes a Malformed. If header.size is
//       believable, only that record is skipped, otherwise everything up to data_head. A drain ends
//       after at most ring size / 8 events and reads no byte outside [data_tail, data_head).
//   S9  Positions are compared modulo 2^32.
//   S10 A header is loaded once, whole, and every check uses that copy.
//   S11 If data_head is behind data_tail by at most the ring's size, and both are multiples of 8,
//       the ring counts as empty: nothing is delivered or written, and the next drain continues.
//       Kernels before 5.2 show such a data_head for a moment (K59 of harness/KERNEL_FACTS.md).
//   (S7 is PerfBuffer's: perf_buffer.h.)
//
// Units: sizes and positions are in bytes.
// Lifetime: a Ring is a view and may be copied freely. The memory that it views must outlive it,
// and events borrow from that memory until the callback returns.
// Threads: one thread at a time may use a ring, while the kernel or another producer writes.
// Errors: none; whatever the ring holds, a drain ends and reports what it found. Nothing here
// throws (an exception of the callback passes through), allocates or makes a system call.
//
// Callbacks: f is called as an lvalue, never copied. A null function pointer ends the program
// (SIGILL or SIGTRAP) before anything is read. An f that drains the ring from which it is called
// gets the same events again, from the first one on. The kernel may then overwrite events that the
// outer drain has yet to deliver, so the outer drain may deliver anything that S8 allows, but it
// still reads no byte outside the ring. An f must not destroy the memory, or the owner, of the ring
// from which it is called.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <linux/perf_event.h>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/callback.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/drain.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring {

template <Memory M = DefaultMemory>
class Ring {
 public:
  // Returns a view of `page` and `data`. Returns nullopt if `data` is null, if its size is not a
  // power of two from kSizeMin to kSizeMax, if its address is not a multiple of 8, or if the two
  // overlap. Ignores the page's own data_offset and data_size. The page must be writable: a drain
  // that has consumed something writes data_tail, which is a SIGSEGV on a read-only page.
  static std::optional<Ring> over(perf_event_mmap_page& page, Bytes data) noexcept {
    return of(internal::view_of(page, data));
  }

  // Returns a view of a whole mapping of an event, as mmap(2) returned it: a page, then the data.
  // Returns nullopt if page_size is less than a perf_event_mmap_page or not less than the mapping's
  // size, if the mapping is null or not aligned for that struct, or if the data is not as above.
  static std::optional<Ring> over(std::span<std::byte> mapping, std::size_t page_size) noexcept {
    return of(internal::view_of(mapping, page_size));
  }

  // Returns a ring to which nothing is ever written.
  static Ring empty() noexcept {
    static constinit perf_event_mmap_page page{};
    alignas(kSizeMin) static constexpr std::byte data[kSizeMin]{};
    return Ring{{&page, data}};
  }

  static constexpr std::size_t kSizeMin = internal::kRingSizeMin;
  static constexpr std::size_t kSizeMax = internal::kRingSizeMax;

  // Whether a drain would find an event (S6). Orders no memory accesses: a drain has its own fence.
  bool readable() const {
    const SharedPosition tail = internal::own_tail<M>(*view_.page);
    return internal::available(view_.data.size(), tail, M::read_once(view_.page->data_head)) != 0;
  }

  // Passes each event in the ring, oldest first, to f(C, PerfEvent) -> ControlFlow<B, C>, with
  // `init` at first and then with the value that f continued with. Returns f's Break if f broke
  // off, otherwise Continue with the last value.
  template <std::movable C, internal::FoldCallback<C> F>
  [[gnu::always_inline]] auto try_fold(C init, F&& f) -> internal::FoldResult<F, C> {
    using Flow = internal::FoldResult<F, C>;
    static_assert(internal::is_control_flow<Flow>, "try_fold's f returns a ControlFlow<B, C>");
    static_assert(std::same_as<typename Flow::ContinueType, C>,
                  "f must continue with the type of init: ControlFlow<B, decltype(init)>");
    internal::expect_callable(f);
    std::optional<Flow> broken;
    internal::Drain<M>{view_}.run([&](const PerfEvent& event) __attribute__((always_inline)) {
      Flow flow = f(std::move(init), event);
      if (flow.is_continue()) {
        init = std::move(flow).continue_value();
        return true;
      }
      broken.emplace(std::move(flow));
      return false;
    });
    if (broken) return std::move(*broken);
    return Continue<C>{std::move(init)};
  }

  // Like try_fold, for an f(C, PerfEvent) -> C that never breaks off. Returns the last value. f's
  // results convert to C implicitly.
  template <std::movable C, internal::FoldCallback<C> F>
    requires std::convertible_to<internal::FoldResult<F, C>, C>
  [[nodiscard]] [[gnu::always_inline]] C fold(C init, F&& f) {
    internal::expect_callable(f);
    internal::Drain<M>{view_}.run([&](const PerfEvent& event) __attribute__((always_inline)) {
      C next = f(std::move(init), event);  // f may return `init` itself
      init = std::move(next);
      return true;
    });
    return init;
  }

  // Like fold, for an f that returns nothing: f(PerfEvent), or an overload set, such as an
  // Overloaded, that takes each of Sample, Lost and Malformed. A set with an `auto` must be an
  // Overloaded; in any other set, the `auto` takes every event, as a PerfEvent.
  //
  // Forced inline, like every drain. This costs 1.2 kB of machine code at each call (x86-64, -O2,
  // an f that counts) and 0.5 kB once. It keeps the drain's state, and what f counts, in registers:
  // without it, g++ 12 generates a drain that takes 1.15 (-O2) to 1.45 (-O3) times as long for a
  // 20-byte sample that is counted, and clang 19 one that takes as long. For a single copy, call it
  // in a single place, in a function of yours that is not inlined:
  //   [[gnu::noinline]] void drain(Ring<>& ring, void (*f)(const PerfEvent&)) { ring.for_each(f); }
  template <internal::EventCallback<void> F>
  [[gnu::always_inline]] void for_each(F&& f) {
    internal::expect_callable(f);
    internal::Drain<M>{view_}.run([&f](const PerfEvent& event) __attribute__((always_inline)) {
      internal::call(f, event);
      return true;
    });
  }

  // Like for_each, for an f that returns a bool: whether to continue. Returns false if f did, and
  // true if all events were delivered. The event on which f returned false is consumed (S3).
  template <internal::EventCallback<bool> F>
  [[gnu::always_inline]] bool for_each_while(F&& f) {
    internal::expect_callable(f);
    bool continues = true;
    internal::Drain<M>{view_}.run([&](const PerfEvent& event) __attribute__((always_inline)) {
      continues = internal::call(f, event);
      return continues;
    });
    return continues;
  }

 private:
  explicit Ring(const internal::RingView& view) noexcept : view_{view} {}
  static std::optional<Ring> of(const std::optional<internal::RingView>& view) noexcept {
    if (!view) return std::nullopt;
    return Ring{*view};
  }

  internal::RingView view_;
};

}  // namespace perfring

#endif
#endif  // PERFRING_RING_RING_H_
