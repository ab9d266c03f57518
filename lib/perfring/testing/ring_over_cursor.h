#ifndef PERFRING_TESTING_RING_OVER_CURSOR_H_
#define PERFRING_TESTING_RING_OVER_CURSOR_H_

#include <optional>
#include <type_traits>
#include <utility>

#include <linux/perf_event.h>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/ring.h"

namespace perfring::testing {

// Ring's interface, implemented by a Cursor or a faulty one, for code that drives a Ring: a drain
// is one look, and one release at its end.
template <class C = Cursor<>>
class RingOverCursor {
 public:
  static std::optional<RingOverCursor> over(perf_event_mmap_page& page, Bytes data) noexcept {
    const auto cursor = C::over(page, data);
    if (!cursor) return std::nullopt;
    return RingOverCursor{*cursor};
  }

  bool readable() const {
    C cursor = cursor_;
    return cursor.look() != 0;
  }

  template <class T, class F>
  auto try_fold(T init, F&& f) -> std::invoke_result_t<F&, T, const PerfEvent&> {
    cursor_.look();
    const Release at_the_end{cursor_};
    while (const auto record = cursor_.next()) {
      auto flow = f(std::move(init), record->event());
      if (flow.is_break()) return flow;
      init = std::move(flow).continue_value();
    }
    return Continue<T>{std::move(init)};
  }

  template <class T, class F>
  T fold(T init, F&& f) {
    using Flow = ControlFlow<Unit, T>;
    return try_fold(std::move(init),
                    [&f](T so_far, const PerfEvent& event) -> Flow {
                      return Continue<T>{f(std::move(so_far), event)};
                    })
        .continue_value();
  }

  template <class F>
  void for_each(F&& f) {
    fold(Unit{}, [&f](Unit, const PerfEvent& event) {
      f(event);
      return Unit{};
    });
  }

 private:
  // Releases the records that were handed out, even if the callback throws.
  struct Release {
    C& cursor;
    ~Release() { cursor.release(); }
  };

  explicit RingOverCursor(const C& cursor) noexcept : cursor_{cursor} {}

  C cursor_;
};

// A second consumer to test besides R: a RingOverCursor over the same Memory if R is a Ring,
// otherwise R itself.
template <class R>
struct CursorConsumerOf {
  using Type = R;
};
template <class M>
struct CursorConsumerOf<Ring<M>> {
  using Type = RingOverCursor<Cursor<M>>;
};
template <class R>
using CursorConsumer = typename CursorConsumerOf<R>::Type;

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_RING_OVER_CURSOR_H_
