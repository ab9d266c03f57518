#ifndef PERFRING_RINGS_STRETCH_H_
#define PERFRING_RINGS_STRETCH_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Samples of a ring that were read and not delivered, behind the front, as long as nothing is odd
// about them: one behind the other, of one header and one raw size, in the order of their keys. So
// their keys are all that is kept, and they are read in one go. Internal to Merge.

#include <array>
#include <cstddef>
#include <cstdint>

#include "perfring/perf_event.h"
#include "perfring/ring/wire.h"
#include "perfring/rings/lost_keys.h"
#include "perfring/rings/window.h"

namespace perfring::internal {

// There is one, or none; if there is, it has as many samples as a window at the least, so that what
// is delivered next is the lowest of as many in either (M3, in merge.h).
template <unsigned kWindow>
class Stretch {
 public:
  bool is_none() const noexcept { return next_ == end_; }
  // Whether one can be taken, and enough are left.
  bool has_more() const noexcept { return end_ - next_ > kWindow; }
  std::uint64_t next_key() const noexcept { return keys_[next_]; }
  std::uint32_t raw() const noexcept { return raw_; }

  void forget() noexcept { next_ = end_ = 0; }

  // The next one becomes the front. Precondition: has_more().
  [[gnu::always_inline]] void take(Front& front) noexcept {
    front.key = keys_[next_++];
    front.place += size_;
  }

  // Takes up to `limit` while the front's key is less than `span` above `base`, and passes the
  // front to visit(key, place), which says whether to go on, when it is no longer the front.
  // Precondition: has_more(), limit is not 0. Counts limit down. Returns what visit() said last.
  template <class Visit>
  [[gnu::always_inline]] bool take_while(Front& front, std::uint64_t base, std::uint64_t span,
                                         std::uint64_t& limit, Visit visit) {
    const unsigned until =
        next_ + static_cast<unsigned>(smaller<std::uint64_t>(end_ - next_ - kWindow, limit));
    Aside aside{*this, front, limit};
    for (;;) {
      const std::uint64_t key = aside.key;
      const std::uint64_t place = aside.place;
      aside.key = keys_[aside.next++];
      aside.place += size_;
      if (!visit(key, place)) return false;
      if (aside.next == until || aside.key - base >= span) return true;
    }
  }

  // From `window`, if that is full of such samples, and the record at `at` is another; there is
  // nothing to be read from `stop` on.
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
    for (unsigned i = 0; i != kWindow; ++i) {
      const Held each = window.at(front.first + i);
      if (each.place != first.place + size * (i + 1)) return false;
      keys_[i] = each.key;
    }
    front.count = 0;
    header_ = header;
    size_ = size;
    raw_ = raw;
    next_ = 0;
    end_ = kWindow;
    return true;
  }

  // Makes a window of what is left. Precondition: it is not none, and has no more.
  void end(Window<kWindow>& window, Front& front) noexcept {
    front.first = 0;
    front.count = end_ - next_;
    for (unsigned i = 0; i != front.count; ++i) {
      window.set(i, {keys_[next_ + i], front.place + size_ * (i + 1)});
    }
    forget();
  }

  // Reads more of them, from `at` on, which moves with it, up to `stop`: none with a key below
  // `after`, or above what the round has seen. What is odd is left to others, as is what does not
  // stand behind the last of them: in a later look, `at` may be where the ring's data begins.
  template <class Walk, class Round>
  [[gnu::always_inline]] void extend(const Front& front, const std::byte* data,
                                     const std::byte*& at, const std::byte* stop,
                                     std::uint64_t& last_key, std::uint64_t after, Round& round) {
    const unsigned left = end_ - next_;
    if (data + front.held().index() + size_ * (left + 1) != at) return;
    for (unsigned i = 0; i != left; ++i) keys_[i] = keys_[next_ + i];
    next_ = 0;
    end_ = left;
    const std::uint64_t header = header_;
    const std::uint32_t raw = raw_;
    const std::size_t size = size_;
    const std::uint64_t seen = round.seen;
    std::uint64_t least = keys_[left - 1] < after ? after : keys_[left - 1];
    std::uint64_t* to = keys_.data() + left;
    const std::uint64_t* const end = keys_.data() + kMost;
    const std::byte* from = at;
    for (auto bytes = static_cast<std::size_t>(stop - at); to != end && bytes >= size;
         bytes -= size) {
      if (Walk::header_at(from) != header || Walk::raw_at(from) != raw) break;
      const std::uint64_t key =
          round.key_of(Sample{{from + Walk::kPayloadAt, raw}, {}}, from + kTimeAt);
      if (key < least || key > seen) break;
      *to++ = least = key;
      from += size;
    }
    if (from == at) return;
    at = from;
    last_key = least;
    end_ = static_cast<unsigned>(to - keys_.data());
  }

 private:
  static constexpr unsigned kMost = kWindow + 24;

  // What changes, in registers for as long as this lasts: also if something is thrown.
  struct Aside {
    Aside(Stretch& of, Front& its_front, std::uint64_t& its_limit) noexcept
        : stretch{of},
          front{its_front},
          limit{its_limit},
          next{of.next_},
          key{its_front.key},
          place{its_front.place} {}
    ~Aside() {
      limit -= next - stretch.next_;
      stretch.next_ = next;
      front.key = key;
      front.place = place;
    }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    Stretch& stretch;
    Front& front;
    std::uint64_t& limit;
    unsigned next;
    std::uint64_t key;
    std::uint64_t place;
  };

  unsigned next_ = 0;
  unsigned end_ = 0;
  std::size_t size_ = 0;
  std::uint64_t header_ = 0;
  std::uint32_t raw_ = 0;
  std::array<std::uint64_t, kMost> keys_;
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RINGS_STRETCH_H_
