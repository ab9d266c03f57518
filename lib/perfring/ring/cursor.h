#ifndef PERFRING_RING_CURSOR_H_
#define PERFRING_RING_CURSOR_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// Cursor<Memory>: the consumer of one perf ring that is pulled, where Ring (ring.h) calls back. A
// cursor looks at the ring, hands out records one by one, and gives their room back on release().
// It is for callers that hold records of several rings at a time, want records whole and
// uninterpreted, or process the ring's bytes themselves.
//
//   cursor.look();
//   while (const auto record = cursor.next()) {
//     std::visit(handle, record->event());  // or decode record->head() and record->tail()
//   }
//   cursor.release();
//
//            data_tail                          data_head, when look() read it
//               |<-------- unread, bytes() ------->|
//   ring: ......[record|record|record|record|record].....
//               |<- handed out ->| next()
//
// The rules of a drain (ring.h), for a cursor:
//
//   S1  data_head is read once, by look(). Records that arrive later wait for the next look. The
//       caller may look again at any time: next() continues after the records that it has handed
//       out.
//   S2  data_tail is written once by each release that gives room back, and by nothing else. An
//       acquire fence follows the read of data_head, a full fence precedes the write (memory.h).
//   S3  A record is consumed when it is released, and only then: data_tail never passes a record
//       that is not released, and never goes back.
//   S4  A record is two slices of the ring, header included. Its event() is Ring's: a Sample is two
//       slices that hold raw-size bytes, padding included.
//   S5  A Lost is its record's count, which follows the id.
//   S6  unread() after a look is 0 exactly if data_head and data_tail were equal, or by S11.
//   S8  A record that breaks the kernel's contract is handed out, too; its event() is Ring's
//       Malformed. If header.size is not believable, the record is everything that is left in the
//       look, and next() has no more. At most ring size / 8 records are handed out and not yet
//       released, and no byte outside [data_tail, data_head) is read.
//   S9  Positions are compared modulo 2^32.
//   S10 next() loads a header once, whole. Every check uses that copy, which header() returns.
//       event() loads and checks the raw size, or the count, anew each time.
//   S11 If data_head is behind the record that next() would hand out, by at most the ring's size,
//       and both are multiples of 8, look() adds nothing: only the records that were handed out are
//       unread.
//   (S7 is PerfBuffer's: perf_buffer.h.)
//
// Units: sizes and positions are in bytes.
// Lifetime: the memory must outlive the cursor. A record's slices, its event and bytes() refer to
// that memory, and hold what the kernel wrote until they are released. An event does not refer to
// its Record.
// Threads: one thread at a time may use a ring, while the kernel or another producer writes.
// Errors: none; whatever the ring holds, next() comes to an end and reports what it found. Nothing
// here throws, allocates or makes a system call.
//
// Two consumers may use one ring, one at a time; the second may be a copy of this cursor or a Ring.
// Once the other consumer has moved data_tail, the records that this cursor has handed out are no
// longer valid. This cursor then releases nothing until its next look(), which starts at data_tail.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring {

template <Memory M = DefaultMemory>
class Cursor {
  using Walk = internal::Walk<M>;

 public:
  // A position between two records.
  enum class Place : SharedPosition {};

  // A record in the ring; or all the bytes that are left, if no record's end is known.
  class Record {
   public:
    // All zeroes if the positions are bad. (size() differs from header().size exactly if the bytes
    // are not one record: BadSize or BadPositions.)
    perf_event_header header() const noexcept { return Walk::decode(header_); }
    // The bytes before the ring's end, header included, and those that wrap to its beginning.
    Bytes head() const noexcept { return head_; }
    Bytes tail() const noexcept { return tail_; }
    std::size_t size() const noexcept { return head_.size() + tail_.size(); }

    // release(begin()) releases all records before this one, release(end()) this one as well.
    Place begin() const noexcept { return begin_; }
    Place end() const noexcept { return end_; }

    // Returns the event that Ring would deliver. If the record was released, or consumed by another
    // consumer, interprets its bytes as they are by then: the result may be anything that the rules
    // allow (S8), but it covers no bytes other than this record's.
    PerfEvent event() const {
      if (!positions_) [[unlikely]]
        return Malformed{Defect::BadPositions, head_, tail_};
      if (Walk::is_sample(header_) && Walk::size_of(header_) == head_.size()) [[likely]] {
        const std::uint32_t raw = Walk::raw_at(head_.data());
        if (raw <= head_.size() - Walk::kPayloadAt) [[likely]]
          return Sample{{head_.data() + Walk::kPayloadAt, raw}, {}};
      }
      const internal::RingView after_end{nullptr, tail_};
      Walk walk{after_end};
      return walk.interpret(walk.within(head_, tail_), Walk::decode(header_));
    }

   private:
    friend class Cursor;
    Record(std::uint64_t header, Bytes head, Bytes tail, SharedPosition begin, SharedPosition end,
           bool positions) noexcept
        : header_{header},
          positions_{positions},
          head_{head},
          tail_{tail},
          begin_{begin},
          end_{end} {}

    std::uint64_t header_;
    bool positions_;  // data_tail and data_head are sound (S8)
    Bytes head_;
    Bytes tail_;
    Place begin_;
    Place end_;
  };

  // Like Ring::over(). Nothing is unread before the first look().
  static std::optional<Cursor> over(perf_event_mmap_page& page, Bytes data) noexcept {
    return of(internal::view_of(page, data));
  }
  static std::optional<Cursor> over(std::span<std::byte> mapping, std::size_t page_size) noexcept {
    return of(internal::view_of(mapping, page_size));
  }

  // Reads data_head, once: everything published by then is unread and will be handed out. Returns
  // unread().
  std::size_t look() {
    const SharedPosition tail = internal::own_tail<M>(*view_.page);
    if (tail != tail_) tail_ = next_ = tail;
    const Position head = internal::read_head<M>(*view_.page);
    end_ = next_ + internal::available(view_.data.size(), next_, head);
    positions_ = internal::are_valid_positions(view_, tail_, next_, end_);
    return unread();
  }

  // The number of bytes that are not released, as of the last look, whether handed out or not. At
  // most the ring's size.
  std::size_t unread() const noexcept { return in_ring(end_ - tail_); }

  // The unread bytes themselves, from data_tail to data_head: those before the ring's end, and
  // those that wrap to its beginning. If data_tail and data_head are further apart than the ring's
  // size, the last lap before data_head.
  std::pair<Bytes, Bytes> bytes() const noexcept {
    const std::size_t length = unread();
    Walk walk{view_};
    const auto at = walk.start(view_, end_ - length, length);
    return {walk.head_of(at, 0, length), walk.tail_of(at, 0, length)};
  }

  // Hands out the oldest record not yet handed out. Returns nullopt if this look has no more.
  std::optional<Record> next() {
    if (next_ == end_) return std::nullopt;
    if (!positions_) [[unlikely]]
      return bad_positions();
    Walk walk{view_};
    const auto at = walk.start(view_, next_, static_cast<std::size_t>(end_ - next_));
    const std::uint64_t header = walk.header_at(at);
    const std::size_t size = walk.size_of(header);
    if (!walk.has_valid_size(at, size)) [[unlikely]]
      return hand_out(walk, at, header, walk.left(at));
    return hand_out(walk, at, header, size);
  }

  // Gives back the room of all records before `place`, so that the kernel can write there. Does
  // nothing if they are released already, or if some of them were not handed out. Does not detect a
  // place of another cursor, or one that was made up: if it is inside a record, reading continues
  // from there, under S8.
  void release(Place place) {
    const auto to = static_cast<SharedPosition>(place);
    if (to - tail_ <= next_ - tail_) commit(to);
  }
  // Releases all records that were handed out.
  void release() { commit(next_); }
  // Releases the first `count` of bytes(), whether handed out or not, for callers that read them
  // without next(): all if there are fewer, otherwise `count` rounded down to a multiple of 8. The
  // rest must begin with a record: its first bytes are taken for a header.
  void release_bytes(std::size_t count) {
    const std::size_t all = unread();
    const std::size_t left =
        count < all ? all - count / internal::kAlignment * internal::kAlignment : 0;
    const SharedPosition to = end_ - left;
    if (to - tail_ > next_ - tail_) next_ = to;
    commit(to);
  }

  // The current values. Neither call is a look.
  Position data_head() const { return M::read_once(view_.page->data_head); }
  SharedPosition data_tail() const { return internal::own_tail<M>(*view_.page); }

 private:
  explicit Cursor(const internal::RingView& view) noexcept : view_{view} {}
  static std::optional<Cursor> of(const std::optional<internal::RingView>& view) noexcept {
    if (!view) return std::nullopt;
    return Cursor{*view};
  }

  std::size_t in_ring(SharedPosition length) const noexcept {
    return static_cast<std::size_t>(internal::smaller<SharedPosition>(length, view_.data.size()));
  }

  Record hand_out(const Walk& walk, const std::byte* at, std::uint64_t header, std::size_t size) {
    const SharedPosition begin = next_;
    next_ += size;
    return Record{header, walk.head_of(at, 0, size), walk.tail_of(at, 0, size), begin, next_, true};
  }

  Record bad_positions() {
    Walk walk{view_};
    walk.stop_ = end_;
    auto at = view_.data.data();
    const Malformed all = walk.bad_positions(at, in_ring(end_ - next_));
    return Record{0, all.head, all.tail, std::exchange(next_, end_), end_, false};
  }

  void commit(SharedPosition tail) { internal::move_tail<M>(*view_.page, tail_, tail); }

  internal::RingView view_;
  // S9: all 64 bits, the lower 32 of which come from data_head.
  SharedPosition tail_ = 0;  // data_tail, as this cursor left it
  SharedPosition next_ = 0;  // the position of the record that next() hands out
  SharedPosition end_ = 0;   // data_head, as look() read it
  bool positions_ = true;    // they are sound (S8)
};

}  // namespace perfring

#endif
#endif  // PERFRING_RING_CURSOR_H_
