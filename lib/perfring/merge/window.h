#ifndef PERFRING_MERGE_WINDOW_H_
#define PERFRING_MERGE_WINDOW_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Window: the records of a ring that were read but not delivered, in the order of their keys.
// Internal to Merge, where the rules M3 and M8 cited here are stated (merge.h).
//
//   keys_            next_                                                end_
//     |  taken already | front | window: kLength records | read ahead: <= 57 |  free
//                        delivered next, then the window,   plain samples in
//                        in the order of its keys           the order of their keys

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "perfring/ring/wire.h"

namespace perfring::internal {

// A record that was read and checked but not delivered, or none. Two words, so that functions
// return it in registers.
struct PendingRecord {
  static constexpr std::uint32_t kSample = 0;  // in one piece
  static constexpr std::uint32_t kSplit = 1;   // a Sample that straddles the ring's end
  static constexpr std::uint32_t kLost = 2;
  static constexpr std::uint32_t kMalformed = 3;           // + Defect
  static constexpr std::uint32_t kKinds = kAlignment - 1;  // the bits that are 0 in every index

  // `index` is a place in the ring's data. `length` is the number of a Sample's raw bytes, or of a
  // Malformed's bytes.
  static std::uint64_t place_of(std::size_t index, std::uint32_t kind, std::size_t length) {
    return std::uint64_t{length} << 32 | index | kind;
  }
  static constexpr PendingRecord none() noexcept { return {0, ~std::uint64_t{0}}; }

  bool is_none() const noexcept { return place == none().place; }
  std::size_t index() const noexcept { return static_cast<std::uint32_t>(place) & ~kKinds; }
  std::uint32_t kind() const noexcept { return static_cast<std::uint32_t>(place) & kKinds; }
  std::uint32_t length() const noexcept { return static_cast<std::uint32_t>(place >> 32); }

  std::uint64_t key;
  std::uint64_t place;
};

// Keys and places are in separate arrays, because compilers otherwise copy the two words through
// vector registers. Both arrays are allocated apart from the object, so that the members which a
// merge reads for every ring are close together.
template <unsigned kLength>
class Window {
  static_assert(kLength >= 1 && kLength <= 64, "a window is 1 to 64 records long");

 public:
  // A front and the window after it.
  static constexpr std::size_t kWhole = kLength + 1;
  // The most records that are read ahead at a time.
  static constexpr std::size_t kAhead = 56;

  // The memory for a Window, which Merge::add() allocates.
  static std::unique_ptr<std::uint64_t[]> allocate_arrays() {
    return std::make_unique<std::uint64_t[]>(2 * kArrayLength);
  }
  explicit Window(std::unique_ptr<std::uint64_t[]> arrays) noexcept : keys_{std::move(arrays)} {
    clear();
  }

  bool empty() const noexcept { return next_ == end_; }
  std::size_t count() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  PendingRecord at(std::size_t i) const noexcept { return record_at(next_ + i); }
  std::uint64_t front_key() const noexcept { return next_[0]; }
  bool front_is_plain() const noexcept { return record_at(next_).kind() == PendingRecord::kSample; }
  bool has_next() const noexcept { return count() > 1; }
  // The key of the record after the front.
  std::uint64_t next_key() const noexcept { return next_[1]; }
  std::uint64_t last_key() const noexcept { return empty() ? 0 : end_[-1]; }

  void clear() noexcept { next_ = end_ = until_ = keys_.get(); }

  // Returns true if the front may be taken at once and two more records follow it: either a whole
  // window remains after it, or everything there is has been read.
  [[gnu::always_inline]] bool has_lookahead() const noexcept { return next_ < until_; }
  [[gnu::always_inline]] PendingRecord take() noexcept {
    const PendingRecord front = record_at(next_);
    ++next_;
    return front;
  }

  // Takes the front repeatedly while it is a sample in one piece with a key below `until_key`, at
  // most `limit` times. Decrements `limit` for each record taken. Passes each record to
  // visit(PendingRecord), after it has ceased to be the front; visit() returns whether to continue.
  // Returns the last result of visit(). Precondition: has_lookahead(), front_is_plain(), and limit
  // is not 0.
  template <class Visit>
  [[gnu::always_inline]] bool take_while(std::uint64_t until_key, std::uint64_t& limit,
                                         Visit visit) {
    const auto left = static_cast<std::uint64_t>(until_ - next_);
    const std::uint64_t* const until = next_ + smaller(left, limit);
    CachedMembers cached{*this, limit};
    do {
      if (!visit(record_at(cached.next++))) return false;
    } while (cached.next != until && *cached.next < until_key &&
             record_at(cached.next).kind() == PendingRecord::kSample);
    return true;
  }

  // From now on, the front may be taken as long as a whole window remains.
  bool keep_window() noexcept { return allow_until(kWhole); }
  // From now on, the front may be taken as long as two records follow it.
  bool drain_window() noexcept { return allow_until(2); }

  // Moves the records to the start of the arrays, if there are at most kWhole + 1. This makes room
  // for one more record and kAhead others.
  void make_room() noexcept {
    std::uint64_t* const to = keys_.get();
    const std::size_t pending_count = count();
    for (std::size_t i = 0; i != pending_count; ++i) set(to + i, at(i));
    next_ = until_ = to;
    end_ = to + pending_count;
  }

  // Inserts a record by its key: after records with an equal key, and not before any record that
  // would have been delivered by now if nothing had been read ahead. Returns true if the record is
  // not the last now.
  bool put(const PendingRecord& another) noexcept {
    std::uint64_t* const last = end_++;
    std::uint64_t* place = last;
    const std::size_t before = smaller<std::size_t>(count() - 1, kLength - 1);
    for (; place != last - before && another.key < place[-1]; --place)
      set(place, record_at(place - 1));
    set(place, another);
    return place != last;
  }

  // M8: Gives each record the key that key(PendingRecord) returns, calling it in the order of
  // before(PendingRecord, PendingRecord), and inserts the records again as if they had just been
  // read in that order. Returns how many records a changed key moves before others.
  template <class Before, class Key>
  std::size_t change_keys(Before before, Key key) {
    for (std::uint64_t* i = next_; i != end_; ++i) {
      const PendingRecord each = record_at(i);
      std::uint64_t* place = i;
      for (; place != next_ && before(each, record_at(place - 1)); --place)
        set(place, record_at(place - 1));
      set(place, each);
    }
    const std::uint64_t* const end = std::exchange(end_, next_);
    std::size_t displaced = 0;
    while (end_ != end) {
      const PendingRecord was = record_at(end_);
      const std::uint64_t new_key = key(was);
      if (put({new_key, was.place}) && new_key != was.key) ++displaced;
    }
    return displaced;
  }

  // Writes record `i` of those that append_staged() will append.
  [[gnu::always_inline]] void stage(std::size_t i, std::uint64_t key,
                                    std::uint64_t place) noexcept {
    end_[i] = key;
    end_[kArrayLength + i] = place;
  }
  PendingRecord staged(std::size_t i) const noexcept { return record_at(end_ + i); }
  void append_staged(std::size_t count) noexcept { end_ += count; }

 private:
  static constexpr std::size_t kArrayLength = kWhole + 1 + kAhead;

  // Keeps the changing members in registers during a scope, and writes them back at its end, even
  // if something is thrown.
  struct CachedMembers {
    CachedMembers(Window& of, std::uint64_t& its_limit) noexcept
        : window{of}, limit{its_limit}, next{of.next_} {}
    ~CachedMembers() {
      limit -= static_cast<std::uint64_t>(next - window.next_);
      window.next_ = next;
    }
    CachedMembers(const CachedMembers&) = delete;
    CachedMembers& operator=(const CachedMembers&) = delete;
    Window& window;
    std::uint64_t& limit;
    std::uint64_t* next;
  };

  bool allow_until(std::size_t number) noexcept {
    until_ = count() > number ? end_ - number : next_;
    return has_lookahead();
  }

  static PendingRecord record_at(const std::uint64_t* key) noexcept {
    return {key[0], key[kArrayLength]};
  }
  static void set(std::uint64_t* key, const PendingRecord& to) noexcept {
    key[0] = to.key;
    key[kArrayLength] = to.place;
  }

  std::uint64_t* next_;   // the front
  std::uint64_t* until_;  // see has_lookahead()
  std::uint64_t* end_;
  std::unique_ptr<std::uint64_t[]> keys_;  // keys_[i + kArrayLength] is the place of keys_[i]
};

}  // namespace perfring::internal

#endif
#endif  // PERFRING_MERGE_WINDOW_H_
