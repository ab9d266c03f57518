#ifndef PERFRING_CONTROL_FLOW_H_
#define PERFRING_CONTROL_FLOW_H_
#if __cplusplus < 202002L
#error "perfring/control_flow.h needs C++20: compile with -std=c++20 or later"
#else

// ControlFlow<B, C>: the result of a try_fold callback, and of try_fold itself. Either Break<B>,
// which ends the drain and returns B, or Continue<C>, which passes the accumulator C on. Mirrors
// Rust's core::ops::ControlFlow, which aya's PerfBuffer::try_fold uses.
//
//   ring.try_fold(0, [](int count, PerfEvent) -> ControlFlow<std::string, int> {
//     if (count == 10) return Break{std::string{"enough"}};
//     return Continue{count + 1};
//   });
//
// Both types may be move-only; neither may be a reference. Everything here is constexpr.
//
// Lifetime, threads: those of the values that a flow carries. Errors: nothing here throws. Reading
// the value of the side that a flow does not carry ends the program.

#include <type_traits>
#include <utility>
#include <variant>

namespace perfring {

// The value of a flow that carries nothing (Rust's `()`).
using Unit = std::monostate;

// The break type of a flow that cannot break (Rust's `Infallible`): no value of it exists.
struct Never {
  Never() = delete;
};

template <class B = Unit>
struct Break {
  B value;
};
Break() -> Break<Unit>;
template <class B>
Break(B) -> Break<B>;

template <class C = Unit>
struct Continue {
  C value;
};
Continue() -> Continue<Unit>;
template <class C>
Continue(C) -> Continue<C>;

template <class B = Unit, class C = Unit>
class [[nodiscard("a drain that broke off looks like one that finished")]] ControlFlow {
  static_assert(std::is_object_v<B> && std::is_object_v<C>, "ControlFlow carries values");

 public:
  using BreakType = B;
  using ContinueType = C;

  // Takes a Break or Continue of any type that converts to the flow's own. Explicit if that
  // conversion is.
  template <class T>
    requires std::is_constructible_v<B, T>
  constexpr explicit(!std::is_convertible_v<T, B>) ControlFlow(Break<T> b)
      : flow_{std::in_place_index<0>, B(std::move(b.value))} {}
  template <class T>
    requires std::is_constructible_v<C, T>
  constexpr explicit(!std::is_convertible_v<T, C>) ControlFlow(Continue<T> c)
      : flow_{std::in_place_index<1>, C(std::move(c.value))} {}

  constexpr bool is_break() const noexcept { return flow_.index() == 0; }
  constexpr bool is_continue() const noexcept { return flow_.index() == 1; }

  // The value carried; the rvalue forms move it out. Precondition: is_break() or is_continue(),
  // respectively. Otherwise the program ends.
  constexpr const B& break_value() const& noexcept { return std::get<0>(flow_).value; }
  constexpr B&& break_value() && noexcept { return std::move(std::get<0>(flow_).value); }
  constexpr const C& continue_value() const& noexcept { return std::get<1>(flow_).value; }
  constexpr C&& continue_value() && noexcept { return std::move(std::get<1>(flow_).value); }

 private:
  std::variant<Break<B>, Continue<C> > flow_;
};

namespace internal {
template <class T>
inline constexpr bool is_control_flow = false;
template <class B, class C>
inline constexpr bool is_control_flow<ControlFlow<B, C> > = true;
}  // namespace internal

}  // namespace perfring

#endif
#endif  // PERFRING_CONTROL_FLOW_H_
