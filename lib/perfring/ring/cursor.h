#ifndef PERFRING_RING_CURSOR_H_
#define PERFRING_RING_CURSOR_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// Cursor<Memory>: the consumer of one perf ring that is pulled, where Ring (ring.h) calls back. It
// looks at the ring, hands out records one by one, and gives their room back on release(): for
// callers that hold records of several rings at a time, want them whole and uninterpreted, or deal
// with the ring's bytes themselves.
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
//   S1  data_head is read once, by look(): what arrives later waits for the next. One may look
//       again at any time: next() goes on behind the records that it has handed out.
//   S2  data_tail is written once by each release that gives room back, and by nothing else. An
//       acquire fence follows the read of data_head, a full fence precedes the write (memory.h).
//   S3  A record is consumed when it is released, and only then: data_tail never passes a record
//       that is not, and never goes back.
//   S4  A record is two slices of the ring, header included. Its event() is Ring's: a Sample is two
//       slices that hold raw-size bytes, padding included.
//   S5  A Lost is its record's count, read past the id.
//   S6  unread() after a look is 0 exactly if data_head and data_tail did not differ, or by S11.
//   S8  A record that breaks the kernel's contract is handed out, too; its event() is Ring's
//       Malformed. If header.size is not believable, its bytes are all that is left in the look,
//       and next() has no more. At most ring size / 8 records are handed out and not released, and
//       no byte outside [data_tail, data_head) is read.
//   S9  Positions are compared modulo 2^32.
//   S10 A header is loaded once, whole, by next(), and every check is made on that copy, which is
//       header(). event() loads the raw size, or the count, anew each time, and checks it anew.
//   S11 A data_head that lies behind the record that next() would hand out, on the 8-byte grid as
//       that is, by at most the ring's size, adds nothing: what was handed out is unread, and no
//       more.
//   (S7 is PerfBuffer's: perf_buffer.h.)
//
// Units: sizes and positions are bytes.
// Lifetime: the memory must outlive the cursor. A record's slices, its event and bytes() refer to
// that memory, and hold what the kernel wrote until they are released. An event does not refer to
// its Record.
// Threads: one at a time may use a ring. The kernel, or another producer, may write meanwhile.
// Errors: none; whatever the ring holds, next() comes to an end and says what it met. Nothing here
// throws, allocates or calls the system.
//
// Two consumers of one ring, one at a time, such as a copy of this cursor or a Ring: once the other
// has moved data_tail, the records that this one has handed out are not valid any more. It releases
// nothing until its next look(), which starts at data_tail.

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
  // Between two records.
  enum class Place : SharedPosition {};

  // A record as it lies in the ring, or all bytes that are left, where no record's end is known.
  class Record {
   public:
    // All zeroes where the positions are bad. (size() differs from header().size exactly if the
    // bytes are of no record: BadSize or BadPositions.)
    perf_event_header header() const noexcept { return Walk::decode(header_); }
    // Its bytes, header included: those before the ring's end, and those behind it.
    Bytes head() const noexcept { return head_; }
    Bytes tail() const noexcept { return tail_; }
    std::size_t size() const noexcept { return head_.size() + tail_.size(); }

    // release(begin()) releases all before it, release(end()) this one as well.
    Place begin() const noexcept { return begin_; }
    Place end() const noexcept { return end_; }

    // The event that Ring would deliver. Of a record that was released, or that another consumer
    // has consumed: what its bytes are by then, which may be anything that the rules allow (S8),
    // and none but its own.
    PerfEvent event() const {
      if (!positions_) [[unlikely]]
        return Malformed{Defect::BadPositions, head_, tail_};
      if (Walk::is_sample(header_) && Walk::size_of(header_) == head_.size()) [[likely]] {
        const std::uint32_t raw = Walk::raw_at(head_.data());
        if (raw <= head_.size() - Walk::kPayloadAt) [[likely]]
          return Sample{{head_.data() + Walk::kPayloadAt, raw}, {}};
      }
      const internal::RingView behind_the_end{nullptr, tail_};
      Walk walk{behind_the_end};
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
    bool positions_;  // are those of a ring
    Bytes head_;
    Bytes tail_;
    Place begin_;
    Place end_;
  };

  // As Ring::over(). Nothing is unread before the first look().
  static std::optional<Cursor> over(perf_event_mmap_page& page, Bytes data) noexcept {
    return of(internal::view_of(page, data));
  }
  static std::optional<Cursor> over(std::span<std::byte> mapping, std::size_t page_size) noexcept {
    return of(internal::view_of(mapping, page_size));
  }

  // Reads data_head, once: all that is published by then is unread and will be handed out. Returns
  // unread().
  std::size_t look() {
    const SharedPosition tail = internal::own_tail<M>(*view_.page);
    if (tail != tail_) tail_ = next_ = tail;
    const Position head = internal::read_head<M>(*view_.page);
    end_ = next_ + internal::available(view_.data.size(), next_, head);
    positions_ = internal::are_positions(view_, tail_, next_, end_);
    return unread();
  }

  // The bytes that are not released, as of the last look, handed out or not. Never more than the
  // ring's size.
  std::size_t unread() const noexcept { return in_ring(end_ - tail_); }

  // Those bytes themselves, the ones before the ring's end and the ones behind it: all from
  // data_tail to data_head. If these are further apart than the ring is long, the last lap before
  // data_head.
  std::pair<Bytes, Bytes> bytes() const noexcept {
    const std::size_t length = unread();
    Walk walk{view_};
    const auto at = walk.start(view_, end_ - length, length);
    return {walk.head_of(at, 0, length), walk.tail_of(at, 0, length)};
  }

  // Hands out the oldest record that has not been, or returns nullopt if this look has no more.
  std::optional<Record> next() {
    if (next_ == end_) return std::nullopt;
    if (!positions_) [[unlikely]]
      return bad_positions();
    Walk walk{view_};
    const auto at = walk.start(view_, next_, static_cast<std::size_t>(end_ - next_));
    const std::uint64_t header = walk.header_at(at);
    const std::size_t size = walk.size_of(header);
    if (!walk.believable(at, size)) [[unlikely]]
      return hand_out(walk, at, header, walk.left(at));
    return hand_out(walk, at, header, size);
  }

  // Gives back the room of all records before this place, so that the kernel can write there. Does
  // nothing if they are released already, or if some of them were not handed out. A place of
  // another cursor, or of no record, is not detected: if it lies inside a record, reading goes on
  // from there, under S8.
  void release(Place place) {
    const auto to = static_cast<SharedPosition>(place);
    if (to - tail_ <= next_ - tail_) commit(to);
  }
  // Releases all records that were handed out.
  void release() { commit(next_); }
  // Releases the first `count` of bytes(), whether handed out or not, for callers that read them
  // without next(): all if there are fewer, else `count` rounded down to a multiple of 8. The rest
  // must begin with a record: its first bytes are taken for a header.
  void release_bytes(std::size_t count) {
    const std::size_t all = unread();
    const std::size_t left =
        count < all ? all - count / internal::kAlignment * internal::kAlignment : 0;
    const SharedPosition to = end_ - left;
    if (to - tail_ > next_ - tail_) next_ = to;
    commit(to);
  }

  // As they are now. Neither is a look.
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
  // S9: all 64 bits, of which data_head says the lower 32.
  SharedPosition tail_ = 0;  // data_tail, as this cursor left it
  SharedPosition next_ = 0;  // of the record that next() hands out
  SharedPosition end_ = 0;   // data_head, when look() read it
  bool positions_ = true;    // are those of a ring
};

}  // namespace perfring

#endif
#endif  // PERFRING_RING_CURSOR_H_
