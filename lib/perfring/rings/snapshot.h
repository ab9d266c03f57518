#ifndef PERFRING_RINGS_SNAPSHOT_H_
#define PERFRING_RINGS_SNAPSHOT_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Snapshots<Memory>: what an overwritable ring holds, newest first. The kernel writes such a ring
// (write_backward, mapped without PROT_WRITE) downwards and over the oldest records, and never
// stops (W32, in the project's harness/RINGS_FACTS.md):
//
//             data_head                     data_head of the snapshot before
//   ... free  |newest|older|older|.......|  |the one before ...          (positions grow that way)
//             |<---- a snapshot ---->|torn|
//
//   V1  A snapshot begins at data_head, which is read once, and goes to where the one before began,
//       or to the end of what the ring holds: min(size, 0 - data_head), exactly (W33).
//   V2  The one record that does not fit in that was overwritten in part by newer ones. It is not
//       delivered. Its header, as every header, is whole: 8 bytes on 8-byte places.
//   V3  read() reads in place. It is right if nobody writes meanwhile: pause first, and make sure
//       that the writers which had begun are gone (W34: OverwritableRing does both). If data_head
//       has moved by the end, it says so.
//   V4  copy() loses nothing and pauses nobody: it copies the ring, then reads data_head again, and
//       takes what lies a margin before what has been written meanwhile (W35). The margin is the
//       largest reservation that can be under way, times the depth to which writers nest: 3 records
//       of the largest size that there are.
//   V5  Snapshot::overwritten counts the bytes that were overwritten since the snapshot before, and
//       so are in no snapshot; positions are compared modulo 2^32, so that this is right for less
//       than 4 GiB. For a first snapshot it is 0.
//   V6  A first snapshot within one ring's length after each 4 GiB ends too early, for the same
//       reason: it lacks the oldest records.
//   V7  Whatever the ring holds, the rules S4, S5, S8 and S10 (ring/ring.h) hold for what is
//       delivered. A header whose size is not believable ends the snapshot: it is what is left of
//       a record (V2) as far as can be known. A data_head that is not a multiple of 8 delivers one
//       Malformed, BadPositions.
//   V8  A data_head that has gone back, above where the snapshot before began, by at most the
//       ring's size and on the 8-byte grid as that is (S11), makes an empty snapshot, and so does
//       one that goes back while copy() copies: the next goes on.
//
// Units: sizes are bytes. The first event is the newest.
// Lifetime: the memory must outlive the object; events are valid until the callback returns, those
// of a copy as long as what they were copied to.
// Threads: one at a time. The kernel may write meanwhile: see V3 and V4.
// Errors: none; nothing here throws (what the callback throws passes through, and the records count
// as read), allocates or calls the system. Nothing is ever written to the ring.
// Callbacks: a null pointer to a function ends the program (SIGILL or SIGTRAP), before anything is
// read. A read() or copy() from within f is a snapshot of its own: it delivers what came since the
// outer one began, and what is copied to the same place is what the outer one goes on in.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/ring/callback.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/walk.h"
#include "perfring/ring/wire.h"

namespace perfring {

// The result of a snapshot.
struct Snapshot {
  std::uint64_t events = 0;       // delivered
  std::uint64_t overwritten = 0;  // bytes (V5)
  bool moved = false;             // read(): somebody wrote meanwhile, so that some may be damaged

  bool operator==(const Snapshot&) const = default;
};

template <Memory M = DefaultMemory>
class Snapshots {
  using Walk = internal::Walk<M>;

 public:
  // As Ring::over(); the memory may be mapped read-only.
  static std::optional<Snapshots> over(perf_event_mmap_page& page, Bytes data) noexcept {
    return of(internal::view_of(page, data));
  }
  static std::optional<Snapshots> over(std::span<std::byte> mapping,
                                       std::size_t page_size) noexcept {
    return of(internal::view_of(mapping, page_size));
  }

  // V3: the records since the last snapshot, by f(const PerfEvent&), which returns nothing, or
  // whether to go on; those behind where it stopped count as read.
  template <class F>
  Snapshot read(F&& f) {
    internal::expect_callable(f);
    Snapshot snapshot;
    const Position head = internal::read_head<M>(*view_.page);
    const std::size_t length = begin(head, snapshot);
    deliver(view_, head, length, f, snapshot);
    // All reads above happen before this one.
    M::fence_after_read_of(view_.page->data_head);
    snapshot.moved = M::read_once(view_.page->data_head) != head;
    return snapshot;
  }

  // V4. `to` is as long as the ring, its address a multiple of 8. Of another length or address, or
  // if it overlaps the ring, nothing is read and this returns nullopt.
  template <class F>
  std::optional<Snapshot> copy(std::span<std::byte> to, std::size_t margin, F&& f) {
    internal::expect_callable(f);
    const auto copied = internal::view_of(*view_.page, to);
    if (!copied || to.size() != view_.data.size()) return std::nullopt;
    if (internal::overlap(to, view_.data)) return std::nullopt;
    Snapshot snapshot;
    const Position head = internal::read_head<M>(*view_.page);
    for (std::size_t i = 0; i != to.size(); i += internal::kAlignment) {
      const std::uint64_t word = M::template read<std::uint64_t>(view_.data.data() + i);
      __builtin_memcpy(to.data() + i, &word, sizeof(word));
    }
    M::fence_after_read_of(view_.page->data_head);
    const Position head_after = M::read_once(view_.page->data_head);
    if (internal::has_gone_back(to.size(), head_after, head)) return snapshot;
    const Position written = head - head_after;
    const bool is_first = !begun_;
    const std::size_t fresh = begin(head, snapshot);
    const std::size_t size = to.size();
    const bool any = written < size && margin < size - written;
    const std::size_t length = internal::smaller(fresh, any ? size - written - margin : 0);
    if (!is_first) snapshot.overwritten += fresh - length;
    deliver(*copied, head, length, f, snapshot);
    return snapshot;
  }

  // The ring's size.
  std::size_t size() const noexcept { return view_.data.size(); }
  // As it is now.
  Position data_head() const { return M::read_once(view_.page->data_head); }

 private:
  explicit Snapshots(const internal::RingView& view) noexcept : view_{view} {}
  static std::optional<Snapshots> of(const std::optional<internal::RingView>& view) noexcept {
    if (!view) return std::nullopt;
    return Snapshots{*view};
  }

  // Begins a snapshot at `head`, and returns its length in bytes.
  std::size_t begin(Position head, Snapshot& snapshot) noexcept {
    const std::size_t size = view_.data.size();
    if (begun_ && internal::has_gone_back(size, head, last_)) return 0;
    const Position fresh = (begun_ ? last_ : Position{0}) - head;
    const std::size_t length = fresh < size ? static_cast<std::size_t>(fresh) : size;
    if (begun_) snapshot.overwritten = fresh - length;
    begun_ = true;
    last_ = head;
    return length;
  }

  template <class F>
  static void deliver(const internal::RingView& view, Position head, std::size_t length, F& f,
                      Snapshot& snapshot) {
    Walk walk{view};
    if (head % internal::kAlignment != 0) {
      if (length == 0) return;
      ++snapshot.events;
      const auto at = walk.start(view, head, length);
      static_cast<void>(goes_on(f, walk.malformed(Defect::BadPositions, at, length)));
      return;
    }
    auto at = walk.start(view, head, length / internal::kAlignment * internal::kAlignment);
    for (std::uint64_t header = 0; walk.next(at, header);) {
      const std::size_t size = Walk::size_of(header);
      if (!walk.believable(at, size)) return;  // V2, V7
      ++snapshot.events;
      if (!goes_on(f, walk.interpret(at, Walk::decode(header)))) return;
      at = walk.advance(at, size);
    }
  }

  template <class F>
  static bool goes_on(F& f, const PerfEvent& event) {
    if constexpr (std::is_void_v<decltype(internal::call(f, event))>) {
      internal::call(f, event);
      return true;
    } else {
      return internal::call(f, event);
    }
  }

  internal::RingView view_;
  Position last_ = 0;  // data_head of the snapshot before
  bool begun_ = false;
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_SNAPSHOT_H_
