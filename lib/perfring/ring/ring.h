#ifndef PERFRING_RING_RING_H_
#define PERFRING_RING_RING_H_

// Ring<Memory>: the consumer of one perf ring, over a control page and data that the caller
// has mapped. Mirrors the drain of aya's PerfBuffer (UPSTREAM.md); S1 to S10 are its rules:
//
//   S1  data_head is read once, when a drain starts: what arrives meanwhile waits for the next.
//   S2  data_tail is written once, when a drain ends, if anything was consumed; also when the
//       callback breaks or throws. An acquire fence follows the read, a full fence precedes the
//       write (memory.h).
//   S3  The event that the callback broke or threw on counts as consumed.
//   S4  A Sample is two slices of the ring that hold raw-size bytes, padding included.
//   S5  A Lost is its record's count, read past the id.
//   S6  readable() is: data_head and data_tail differ.
//   S8  A record that breaks the kernel's contract becomes a Malformed. If header.size is
//       believable, only that record is skipped, else everything up to data_head is. A drain ends
//       after at most ring size / 8 events and reads no byte outside [data_tail, data_head).
//   S9  Positions are compared modulo 2^32.
//   S10 A header is loaded once, whole, and every check is made on that copy.
//   (S7 is PerfBuffer's.)
//
// Errors: none; whatever the ring holds, a drain ends and says what it met. Nothing here throws
// (what the callback throws passes through), allocates or calls the system.
// Threads: one at a time may use a ring. The kernel, or another producer, may write meanwhile.
// The callback must not drain the ring it is called from.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include <linux/perf_event.h>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/drain.h"
#include "perfring/ring/memory.h"

namespace perfring {

template <Memory M = DefaultMemory>
class Ring {
 public:
  // A view of `page` and `data`, which must both outlive it. Returns nullopt unless data's size is
  // a power of two from kSizeMin to kSizeMax bytes and its address a multiple of 8. The page's own
  // data_offset and data_size are not believed.
  static std::optional<Ring> over(perf_event_mmap_page& page, Bytes data) noexcept {
    const bool fits = std::has_single_bit(data.size()) && data.size() >= kSizeMin &&
                      data.size() <= kSizeMax &&
                      reinterpret_cast<std::uintptr_t>(data.data()) % kSizeMin == 0;
    if (!fits) return std::nullopt;
    return Ring{page, data};
  }

  // A ring that nothing is ever written to.
  static Ring empty() noexcept {
    static constinit perf_event_mmap_page page{};
    alignas(kSizeMin) static constexpr std::byte data[kSizeMin]{};
    return Ring{page, data};
  }

  static constexpr std::size_t kSizeMin = 8;
  static constexpr std::size_t kSizeMax = std::size_t{1} << 31;  // S9: half of what Position holds

  // Whether a drain would find an event (S6).
  bool readable() const {
    return M::read_once(view_.page->data_head) !=
           static_cast<Position>(internal::own_tail<M>(*view_.page));
  }

  // Passes each event that is in the ring, oldest first, to f(C, PerfEvent) -> ControlFlow<B, C>,
  // with `init` and then with what f continued with. Returns f's Break if it broke off, else
  // Continue with the last value.
  template <std::movable C, class F>
    requires std::invocable<F&, C, const PerfEvent&>
  [[gnu::always_inline]] auto try_fold(C init, F&& f)
      -> std::invoke_result_t<F&, C, const PerfEvent&> {
    using Flow = std::invoke_result_t<F&, C, const PerfEvent&>;
    static_assert(internal::is_control_flow<Flow>, "try_fold's f returns a ControlFlow<B, C>");
    static_assert(std::same_as<typename Flow::ContinueType, C>,
                  "f must continue with the type of init: ControlFlow<B, decltype(init)>");
    std::optional<Flow> broken;
    internal::Drain<M>{view_}.run([&](const PerfEvent& event) __attribute__((always_inline)) {
      Flow flow = std::invoke(f, std::move(init), event);
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

  // The same for an f(C, PerfEvent) -> C that never breaks off. Returns the last value.
  template <std::movable C, class F>
    requires std::convertible_to<std::invoke_result_t<F&, C, const PerfEvent&>, C>
  [[nodiscard]] [[gnu::always_inline]] C fold(C init, F&& f) {
    internal::Drain<M>{view_}.run([&](const PerfEvent& event) __attribute__((always_inline)) {
      C next = std::invoke(f, std::move(init), event);  // f may hand back `init` itself
      init = std::move(next);
      return true;
    });
    return init;
  }

  // The same for an f(PerfEvent) that returns nothing.
  template <class F>
    requires std::is_void_v<std::invoke_result_t<F&, const PerfEvent&>>
  [[gnu::always_inline]] void for_each(F&& f) {
    internal::Drain<M>{view_}.run([&f](const PerfEvent& event) __attribute__((always_inline)) {
      std::invoke(f, event);
      return true;
    });
  }

 private:
  Ring(perf_event_mmap_page& page, Bytes data) noexcept : view_{&page, data} {}

  internal::RingView view_;
};

}  // namespace perfring

#endif  // PERFRING_RING_RING_H_
