#ifndef PERFRING_SNAPSHOT_SNAPSHOT_H_
#define PERFRING_SNAPSHOT_SNAPSHOT_H_
#if __cplusplus < 202002L
#error "perfring/rings needs C++20: compile with -std=c++20 or later"
#else

// Snapshots<Memory>: what an overwritable ring holds, newest first. The kernel writes such a ring
// (write_backward, mapped without PROT_WRITE) downwards, overwrites the oldest records, and never
// stops (W32, in the project's harness/RINGS_FACTS.md):
//
//             data_head                     data_head of the previous snapshot
//   ... free  |newest|older|older|.......|  |previous snapshot ...  (positions grow to the right)
//             |<---- a snapshot ---->|torn|
//
//   V1  A snapshot begins at data_head, which is read once, and extends to where the previous
//       snapshot began, or to the end of what the ring holds, which is exactly min(size, 0 -
//       data_head) (W33).
//   V2  The one record that does not fit in that has been partly overwritten by newer ones. It is
//       not delivered. Its header is whole, as every header is: 8 bytes at a multiple of 8.
//   V3  read() reads in place. Its result is correct if nobody writes meanwhile. So first pause the
//       output, and make sure that the writers that had begun are done (W34: OverwritableRing does
//       both). If data_head has moved by the end, Snapshot::moved is set.
//   V4  copy() loses nothing and pauses nobody. It copies the ring, reads data_head again, and uses
//       the part that ends a margin before the bytes that were written meanwhile (W35). The margin
//       is the largest reservation that can be in progress, times the depth to which writers nest:
//       3 records of the largest size that occurs.
//   V5  Snapshot::overwritten is the number of bytes that were overwritten since the previous
//       snapshot, and so are in no snapshot. Positions are compared modulo 2^32, so the number is
//       right below 4 GiB. It is 0 for a first snapshot.
//   V6  For the same reason, a first snapshot within one ring's length after each 4 GiB ends too
//       early: the oldest records are missing.
//   V7  Whatever the ring holds, rules S4, S5, S8 and S10 (ring/ring.h) apply to the events
//       delivered. A header with a size that is not believable ends the snapshot: as far as can be
//       known, it is what is left of an overwritten record (V2). If data_head is not a multiple of
//       8, one Malformed is delivered: BadPositions.
//   V8  If data_head has gone back, above where the previous snapshot began, by at most the ring's
//       size and still on the 8-byte grid (S11), the snapshot is empty. The same holds if data_head
//       goes back while copy() copies. The next snapshot continues.
//
// Units: sizes are bytes. The first event is the newest.
// Lifetime: the memory must outlive the object. Events are valid until the callback returns; those
// of a copy are valid as long as the copy is.
// Threads: one at a time. The kernel may write meanwhile: see V3 and V4.
// Errors: none. Nothing here throws, allocates or makes a system call. (The callback's exceptions
// pass through, and the records count as read.) Nothing is ever written to the ring.
// Callbacks: a null function pointer ends the program (SIGILL or SIGTRAP) before anything is read.
// A read() or copy() from within f is a separate snapshot, which delivers what came since the outer
// one began. If it copies to the same place, the outer snapshot continues in the new copy.

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
  bool moved = false;             // read(): somebody wrote meanwhile, so events may be damaged

  bool operator==(const Snapshot&) const = default;
};

template <Memory M = DefaultMemory>
class Snapshots {
  using Walk = internal::Walk<M>;

 public:
  // As for Ring::over(), but the memory may be mapped read-only.
  static std::optional<Snapshots> over(perf_event_mmap_page& page, Bytes data) noexcept {
    return of(internal::view_of(page, data));
  }
  static std::optional<Snapshots> over(std::span<std::byte> mapping,
                                       std::size_t page_size) noexcept {
    return of(internal::view_of(mapping, page_size));
  }

  // V3: Passes the records since the last snapshot to f(const PerfEvent&), which returns either
  // nothing or whether to continue. If f stops, the records after that count as read.
  template <class F>
  Snapshot read(F&& f) {
    internal::expect_callable(f);
    Snapshot snapshot;
    const Position head = internal::read_head<M>(*view_.page);
    const std::size_t length = begin(head, snapshot);
    deliver(view_, head, length, f, snapshot);
    // All reads above happen before the next one.
    M::fence_after_read_of(view_.page->data_head);
    snapshot.moved = M::read_once(view_.page->data_head) != head;
    return snapshot;
  }

  // V4: Copies to `to`, which must be as long as the ring, aligned to 8 bytes, and outside the
  // ring. Otherwise reads nothing and returns nullopt.
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

  // Returns the ring's size.
  std::size_t size() const noexcept { return view_.data.size(); }
  // Returns the current data_head.
  Position data_head() const { return M::read_once(view_.page->data_head); }

 private:
  explicit Snapshots(const internal::RingView& view) noexcept : view_{view} {}
  static std::optional<Snapshots> of(const std::optional<internal::RingView>& view) noexcept {
    if (!view) return std::nullopt;
    return Snapshots{*view};
  }

  // Begins a snapshot at `head`. Returns its length in bytes.
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
      static_cast<void>(pass_to(f, walk.malformed(Defect::BadPositions, at, length)));
      return;
    }
    auto at = walk.start(view, head, length / internal::kAlignment * internal::kAlignment);
    for (std::uint64_t header = 0; walk.next(at, header);) {
      const std::size_t size = Walk::size_of(header);
      if (!walk.has_valid_size(at, size)) return;  // V2, V7
      ++snapshot.events;
      if (!pass_to(f, walk.interpret(at, Walk::decode(header)))) return;
      at = walk.advance(at, size);
    }
  }

  template <class F>
  static bool pass_to(F& f, const PerfEvent& event) {
    if constexpr (std::is_void_v<decltype(internal::call(f, event))>) {
      internal::call(f, event);
      return true;
    } else {
      return internal::call(f, event);
    }
  }

  internal::RingView view_;
  Position last_ = 0;  // data_head of the previous snapshot
  bool begun_ = false;
};

}  // namespace perfring

#endif
#endif  // PERFRING_SNAPSHOT_SNAPSHOT_H_
