#ifndef PERFRING_RING_CALLBACK_H_
#define PERFRING_RING_CALLBACK_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// The callbacks that a drain accepts, and how it passes an event to them. Internal to Ring.

#include <type_traits>
#include <utility>
#include <variant>

#include "perfring/perf_event.h"

namespace perfring::internal {

template <class F>
inline constexpr bool is_overloaded = false;
template <class... Fs>
inline constexpr bool is_overloaded<Overloaded<Fs...> > = true;

template <class F, class Event>
concept CallableWith = requires(F& f, Event&& event) { f(static_cast<Event&&>(event)); };

// An F that is called with the whole event. Never an Overloaded: an `auto` in it would take every
// event away from its other callables.
template <class F>
concept TakesEvent = !is_overloaded<std::remove_cvref_t<F> > && CallableWith<F, const PerfEvent&>;

// An F that is called with the event's own type. Excludes an F that takes a PerfEvent&&, to which a
// Sample would convert, or a PerfEvent&, which would never be called.
template <class F>
concept TakesAlternatives = !TakesEvent<F> &&
                            (is_overloaded<std::remove_cvref_t<F> > ||
                             (!CallableWith<F, PerfEvent> && !CallableWith<F, PerfEvent&>)) &&
                            CallableWith<F, const Sample&> && CallableWith<F, const Lost&> &&
                            CallableWith<F, const Malformed&>;

template <class F, class Event>
using Result = decltype(std::declval<F&>()(std::declval<Event>()));

template <class F, class R>
inline constexpr bool returns = [] {
  if constexpr (TakesEvent<F>) {
    return std::is_same_v<Result<F, const PerfEvent&>, R>;
  } else {
    return std::is_same_v<Result<F, const Sample&>, R> &&
           std::is_same_v<Result<F, const Lost&>, R> &&
           std::is_same_v<Result<F, const Malformed&>, R>;
  }
}();

// A callable that takes any event, or an overload set that takes each kind of event. R is the
// return type of all.
template <class F, class R>
concept EventCallback = (TakesEvent<F> || TakesAlternatives<F>) && returns<F, R>;

template <class F>
[[gnu::always_inline]] inline decltype(auto) call(F& f, const PerfEvent& event) {
  if constexpr (TakesEvent<F>) {
    return f(event);
  } else {
    if (const auto* const sample = std::get_if<Sample>(&event)) return f(*sample);
    if (const auto* const lost = std::get_if<Lost>(&event)) return f(*lost);
    return f(*std::get_if<Malformed>(&event));
  }
}

// The return type of fold's and try_fold's f. Ill-formed if f does not take a C and an event.
template <class F, class C>
using FoldResult =
    decltype(std::declval<F&>()(std::declval<C>(), std::declval<const PerfEvent&>()));
template <class F, class C>
concept FoldCallback = requires { typename FoldResult<F, C>; };

// Traps if f is a null function pointer.
template <class F>
[[gnu::always_inline]] inline void expect_callable([[maybe_unused]] const F& f) noexcept {
  if constexpr (std::is_pointer_v<F>) {
    if (f == nullptr) __builtin_trap();
  }
}

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RING_CALLBACK_H_
