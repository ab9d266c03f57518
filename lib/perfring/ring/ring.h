#ifndef PERFRING_RING_RING_H_
#define PERFRING_RING_RING_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// Ring<Memory>: the consumer of one perf ring, over a control page and data that the caller
// has mapped. Mirrors the drain of aya's PerfBuffer (UPSTREAM.md); S1 to S11 are its rules:
//
//   S1  data_head is read once, when a drain starts: what arrives meanwhile waits for the next.
//   S2  data_tail is written once, when a drain ends, if anything was consumed; also when the
//       callback breaks or throws. An acquire fence follows the read, a full fence precedes the
//       write (memory.h).
//   S3  The event that the callback broke or threw on counts as consumed.
//   S4  A Sample is two slices of the ring that hold raw-size bytes, padding included.
//   S5  A Lost is its record's count, read past the id.
//   S6  readable() is: data_head and data_tail differ, and not by S11.
//   S8  A record that breaks the kernel's contract becomes a Malformed. If header.size is
//       believable, only that record is skipped, else everything up to data_head is. A drain ends
//       after at most ring size / 8 events and reads no byte outside [data_tail, data_head).
//   S9  Positions are compared modulo 2^32.
//   S10 A header is loaded once, whole, and every check is made on that copy.
//   S11 A data_head that lies behind data_tail, on the 8-byte grid as that is, by at most the
//       ring's size, is that of an empty ring: nothing is delivered or written, and the next drain
//       goes on. Kernels before 5.2 show one for a moment (K59 of harness/KERNEL_FACTS.md).
//   (S7 is PerfBuffer's: perf_buffer.h.)
//
// Units: sizes and positions are bytes.
// Lifetime: a Ring is a view, copied freely; the memory that it views must outlive it, and events
// borrow from that memory until the callback returns.
// Threads: one at a time may use a ring. The kernel, or another producer, may write meanwhile.
// Errors: none; whatever the ring holds, a drain ends and reports what it met. Nothing here throws
// (what the callback throws passes through), allocates or calls the system.
//
// Callbacks: f is called as an lvalue, never copied. A null pointer to a function ends the program
// (SIGILL or SIGTRAP), before anything is read. An f that drains the ring that it is called from
// gets the same events again, starting at the first; the kernel may then overwrite what the outer
// drain has yet to deliver, so that this may be anything the rules allow (S8), and no byte outside
// the ring is read. An f must not destroy the memory, or the owner, of the ring it is called from.

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
#include "perfring/ring/wire.h"

namespace perfring {

template <Memory M = DefaultMemory>
class Ring {
 public:
  // A view of `page` and `data`. Returns nullopt unless data's size is a power of two from kSizeMin
  // to kSizeMax and its address a multiple of 8, and not null; or if the two overlap. The page's
  // own data_offset and data_size are not believed. The page must be writable: a drain that has
  // consumed something writes data_tail, by a SIGSEGV where it may not.
  static std::optional<Ring> over(perf_event_mmap_page& page, Bytes data) noexcept {
    return of(internal::view_of(page, data));
  }

  // A view of a whole mapping of an event, as mmap(2) returned it: a page, and behind it the data.
  // Returns nullopt if page_size is less than a perf_event_mmap_page or not less than the mapping's
  // size, if the mapping is null or not aligned for that struct, or if the data is not as above.
  static std::optional<Ring> over(std::span<std::byte> mapping, std::size_t page_size) noexcept {
    return of(internal::view_of(mapping, page_size));
  }

  // A ring that nothing is ever written to.
  static Ring empty() noexcept {
    static constinit perf_event_mmap_page page{};
    alignas(kSizeMin) static constexpr std::byte data[kSizeMin]{};
    return Ring{{&page, data}};
  }

  static constexpr std::size_t kSizeMin = internal::kRingSizeMin;
  static constexpr std::size_t kSizeMax = internal::kRingSizeMax;

  // Whether a drain would find an event (S6). It orders nothing: a drain has its own fence.
  bool readable() const {
    const SharedPosition tail = internal::own_tail<M>(*view_.page);
    return internal::available(view_.data.size(), tail, M::read_once(view_.page->data_head)) != 0;
  }

  // Passes each event that is in the ring, oldest first, to f(C, PerfEvent) -> ControlFlow<B, C>,
  // with `init` and then with what f continued with. Returns f's Break if it broke off, else
  // Continue with the last value.
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

  // The same for an f(C, PerfEvent) -> C that never breaks off. Returns the last value. f's results
  // are converted to C, as C++ converts them.
  template <std::movable C, internal::FoldCallback<C> F>
    requires std::convertible_to<internal::FoldResult<F, C>, C>
  [[nodiscard]] [[gnu::always_inline]] C fold(C init, F&& f) {
    internal::expect_callable(f);
    internal::Drain<M>{view_}.run([&](const PerfEvent& event) __attribute__((always_inline)) {
      C next = f(std::move(init), event);  // f may hand back `init` itself
      init = std::move(next);
      return true;
    });
    return init;
  }

  // The same for an f that returns nothing: f(PerfEvent), or an overload set, such as an
  // Overloaded, with a place for each of Sample, Lost and Malformed. A set with an `auto` must be
  // an Overloaded: of any other, the `auto` takes every event, as a PerfEvent.
  //
  // Forced inline, as every drain is. That takes 1.2 kB of machine code at each call (x86-64, -O2,
  // an f that counts) and 0.5 kB once. It keeps the drain's state, and what f counts, in registers:
  // left to choose, g++ 12 makes a drain that takes 1.15 (-O2) to 1.45 times (-O3) as long for a
  // sample of 20 bytes that is counted, and clang 19 one that takes as long. To have a single copy,
  // call it in a single place, a function of yours that is not inlined:
  //   [[gnu::noinline]] void drain(Ring<>& ring, void (*f)(const PerfEvent&)) { ring.for_each(f); }
  template <internal::EventCallback<void> F>
  [[gnu::always_inline]] void for_each(F&& f) {
    internal::expect_callable(f);
    internal::Drain<M>{view_}.run([&f](const PerfEvent& event) __attribute__((always_inline)) {
      internal::call(f, event);
      return true;
    });
  }

  // The same for an f that returns whether to go on: a bool. Returns false if f did so, and true if
  // nothing is left of what was there. The event that f stopped at is consumed (S3).
  template <internal::EventCallback<bool> F>
  [[gnu::always_inline]] bool for_each_while(F&& f) {
    internal::expect_callable(f);
    bool goes_on = true;
    internal::Drain<M>{view_}.run([&](const PerfEvent& event) __attribute__((always_inline)) {
      goes_on = internal::call(f, event);
      return goes_on;
    });
    return goes_on;
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
