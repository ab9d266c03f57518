#ifndef PERFRING_RINGS_STRETCH_H_
#define PERFRING_RINGS_STRETCH_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Samples of a ring that were read and not delivered, as long as nothing is odd about them: one
// behind the other, of one header and one raw size, in the order of their keys. So their keys are
// all that is kept, and they are read in one go. Internal to Merge.

#include <array>
#include <cstddef>
#include <cstdint>

#include "perfring/perf_event.h"
#include "perfring/ring/wire.h"
#include "perfring/rings/lost_keys.h"
#include "perfring/rings/window.h"

namespace perfring::internal {

// There is one, or none; if there is, it holds the ring's front, and behind it as many samples as a
// window at the least, so that what is delivered next is the lowest of as many in either (M3, in
// merge.h).
template <unsigned kWindow>
class Stretch {
 public:
  bool is_none() const noexcept { return payload_ == nullptr; }
  // Whether one can be taken, and enough are left.
  bool has_more() const noexcept { return next_ != until_; }
  std::uint64_t front_key() const noexcept { return keys_[next_]; }
  std::uint64_t next_key() const noexcept { return keys_[next_ + 1]; }
  // Of the front.
  const std::byte* payload() const noexcept { return payload_; }
  std::uint32_t raw() const noexcept { return raw_; }
  template <class Walk>
  Held front(const std::byte* data) const noexcept {
    const auto index = static_cast<std::size_t>(payload_ - Walk::kPayloadAt - data);
    return Held::of(front_key(), index, Held::kSample, raw_);
  }

  void forget() noexcept {
    payload_ = nullptr;
    next_ = until_ = 0;
  }

  // The next one becomes the front. Precondition: has_more().
  [[gnu::always_inline]] void take() noexcept {
    ++next_;
    payload_ += size_;
  }

  // Takes up to `limit` while the front's key is less than `span` above `base`, and passes the
  // front to visit(key, payload), which says whether to go on, when it is no longer the front.
  // Precondition: has_more(), limit is not 0. Counts limit down. Returns what visit() said last.
  template <class Visit>
  [[gnu::always_inline]] bool take_while(std::uint64_t base, std::uint64_t span,
                                         std::uint64_t& limit, Visit visit) {
    const std::size_t until =
        next_ + static_cast<std::size_t>(smaller<std::uint64_t>(until_ - next_, limit));
    Aside aside{*this, limit};
    for (std::uint64_t key = keys_[aside.next];;) {
      const std::byte* const payload = aside.payload;
      const std::uint64_t next_key = keys_[++aside.next];
      aside.payload += size_;
      if (!visit(key, payload)) return false;
      if (aside.next == until || next_key - base >= span) return true;
      key = next_key;
    }
  }

  // From a front and a `window` that are full of such samples, if the record at `at` is another,
  // and all of it is before `stop`: then they hold none.
  template <class Walk>
  bool begin(const Window<kWindow>& window, Front& front, const std::byte* data,
             const std::byte* at, const std::byte* stop) noexcept {
    if (at == stop) return false;
    const std::uint64_t header = Walk::header_at(at);
    const std::size_t size = Walk::size_of(header);
    if (!Walk::is_sample(header) || size > static_cast<std::size_t>(stop - at)) return false;
    const std::uint32_t raw = Walk::raw_at(at);
    if (raw > size - Walk::kPayloadAt) return false;
    const Held first = front.held();
    if (front.count != kWindow || first.kind() != Held::kSample || first.length() != raw ||
        data + first.index() + size * (kWindow + 1) != at) {
      return false;
    }
    keys_[0] = first.key;
    for (unsigned i = 0; i != kWindow; ++i) {
      const Held each = window.at(front.first + i);
      if (each.place != first.place + size * (i + 1)) return false;
      keys_[i + 1] = each.key;
    }
    front.hold(Held::none());
    front.count = 0;
    header_ = header;
    size_ = size;
    raw_ = raw;
    payload_ = data + first.index() + Walk::kPayloadAt;
    next_ = until_ = 0;
    return true;
  }

  // Turns what is left into a front and a window. Precondition: !is_none(), and !has_more().
  template <class Walk>
  void end(Window<kWindow>& window, Front& hot, const std::byte* data) noexcept {
    const Held first = front<Walk>(data);
    hot.hold(first);
    hot.first = 0;
    hot.count = kWindow;
    for (unsigned i = 0; i != kWindow; ++i) {
      window.set(i, {keys_[next_ + i + 1], first.place + size_ * (i + 1)});
    }
    forget();
  }

  // M8, in merge.h: keys above what the round has seen become that.
  template <class Round>
  void meets_clock(Round& round) noexcept {
    for (std::size_t i = until_ + kWindow + 1; i != next_ && keys_[i - 1] > round.seen; --i) {
      keys_[i - 1] = round.ahead();
    }
  }

  // Reads more of them, from `at` on, which moves with it, up to `stop`: none with a key below
  // `after`, or above what the round has seen. What is odd is left to others, as is what does not
  // stand behind the last of them: in a later look, `at` may be where the ring's data begins.
  // Precondition: !is_none(), and !has_more().
  template <class Walk, class Round>
  [[gnu::always_inline]] void extend(const std::byte*& at, const std::byte* stop,
                                     std::uint64_t& last_key, std::uint64_t after, Round& round) {
    const std::uint64_t header = header_;
    const std::uint32_t raw = raw_;
    const std::size_t size = size_;
    const auto bytes = static_cast<std::size_t>(stop - at);
    if (payload_ - Walk::kPayloadAt + size * (kWindow + 1) != at) return;
    for (unsigned i = 0; i != kWindow + 1; ++i) keys_[i] = keys_[next_ + i];
    next_ = until_ = 0;
    std::uint64_t least = keys_[kWindow] < after ? after : keys_[kWindow];
    std::uint64_t* to = keys_.data() + kWindow + 1;
    const std::byte* from = at;
    // Before `at` if there is no room for one: the last of those that are held.
    const std::byte* const last = at + smaller(bytes, size * kMore) - size;
    for (; from <= last && Walk::header_at(from) == header && Walk::raw_at(from) == raw;
         from += size) {
      const std::uint64_t key =
          round.key_of(Sample{{from + Walk::kPayloadAt, raw}, {}}, from + kTimeAt);
      if (key < least) break;
      *to++ = least = key;
    }
    for (; from != at && to[-1] > round.seen; from -= size) --to;
    if (from == at) return;
    at = from;
    last_key = to[-1];
    until_ = static_cast<std::size_t>(to - keys_.data()) - 1 - kWindow;
  }

 private:
  static constexpr unsigned kMore = 56;  // that are read in one go, at most

  // What changes, in registers for as long as this lasts: also if something is thrown.
  struct Aside {
    Aside(Stretch& of, std::uint64_t& its_limit) noexcept
        : stretch{of}, limit{its_limit}, next{of.next_}, payload{of.payload_} {}
    ~Aside() {
      limit -= next - stretch.next_;
      stretch.next_ = next;
      stretch.payload_ = payload;
    }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    Stretch& stretch;
    std::uint64_t& limit;
    std::size_t next;
    const std::byte* payload;
  };

  std::size_t next_ = 0;   // the front's key
  std::size_t until_ = 0;  // the front behind which a window is left, and no more
  std::uint32_t raw_ = 0;
  std::size_t size_ = 0;
  const std::byte* payload_ = nullptr;  // the front's; null: there is none
  std::uint64_t header_ = 0;
  std::array<std::uint64_t, kWindow + 1 + kMore> keys_;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_STRETCH_H_
