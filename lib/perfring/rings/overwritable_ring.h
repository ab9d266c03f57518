#ifndef PERFRING_RINGS_OVERWRITABLE_RING_H_
#define PERFRING_RINGS_OVERWRITABLE_RING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// OverwritableRing: one CPU's flight recorder. The kernel writes over the oldest records and never
// stops; snapshots deliver what is there, newest first (rules V1 to V7: rings/snapshot.h).
//
//   auto ring = OverwritableRing::open(*array, /*cpu=*/0, /*page_count=*/64);
//   ... and when something has happened:
//   ring->snapshot(Settle::Quickly, [](const PerfEvent& event) { handle(event); });
//
// Units: page counts are data pages; a margin is bytes.
// Lifetime: move-only. It keeps the map's open file alive, as PerfEventArrayBuffer does, and leaves
// the entry when it is destroyed. Events are valid until the callback returns. fork(2): as
// PerfBuffer's: in a forked child, snapshot() and copy() end the program with an assertion, or are
// undefined with NDEBUG.
// Threads: one at a time.
// Errors: open() and snapshot() fail; where memory runs out they, and copy(), throw std::bad_alloc.
// Callbacks: as Snapshots'. When a snapshot() from within one ends, the kernel may write again:
// the outer one's Snapshot::moved is then set.
// Kernel: kernel/events/ring_buffer.c: __perf_output_begin() with `backward`; kernel/events/core.c:
// perf_mmap() at v6.18.
// W: facts that were measured, in the project's harness/RINGS_FACTS.md.

#include <cassert>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <utility>
#include <vector>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/output_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/rings_error.h"
#include "perfring/rings/snapshot.h"
#include "perfring/rings/writer_barrier.h"

namespace perfring {

// A snapshot's way to make sure that nobody writes any more. A writer that had begun before the
// pause goes on for a while: 2 us at most were seen (W34). Any other number is taken as Quickly.
enum class Settle : std::uint8_t {
  Quickly,     // until data_head has stood still for 20 us; Snapshot::moved says if that was wrong
  Completely,  // until all programs that were under way have ended: WriterBarrier, 8 ms and more
};

namespace internal {

// Returns once head() has stood still for 20 us of now(), or after 10 ms: a writer that never ends
// is not waited for (Snapshot::moved says so).
template <class Head, class Now>
void wait_until_it_stands(Head head, Now now) {
  constexpr std::chrono::microseconds stands{20};
  constexpr std::chrono::milliseconds most{10};
  const auto begin = now();
  auto since = begin;
  auto last = head();
  for (auto at = begin; at - since < stands && at - begin < most; at = now()) {
    const auto next = head();
    if (next != last) since = at;
    last = next;
  }
}

}  // namespace internal

class PERFRING_EXPORT OverwritableRing {
 public:
  // Opens the ring on `cpu` and makes it that entry of the map, in place of what was there. A page
  // count is any type of integer but bool; a negative number, or one that size_t cannot hold, is an
  // InvalidPageCount (of the largest size_t).
  // Errors: those of PerfEventArray::open.
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  static std::expected<OverwritableRing, RingsError> open(const PerfEventArray& array,
                                                          std::uint32_t cpu, N page_count) {
    return open_pages(array, cpu, internal::page_count(page_count));
  }

  OverwritableRing(OverwritableRing&&) noexcept = default;
  OverwritableRing& operator=(OverwritableRing&&) = delete;

  // The records since the snapshot before, in place: output is paused meanwhile, and each output
  // that is tried then is refused, and counted by a LOST record after it.
  // Errors: SyscallError, if the ring cannot be paused (EBADF: moved from), or nothing waits for
  // programs; or if it stays paused, after the records were passed.
  template <class F>
  std::expected<Snapshot, RingsError> snapshot(Settle how, F&& f) {
    internal::expect_callable(f);
    expect_own();
    Pause pause{*this};
    if (auto settled = settle(how); !settled) return std::unexpected(std::move(settled).error());
    const Snapshot snapshot = snapshots_.read(f);
    if (auto resumed = pause.end(); !resumed) return std::unexpected(std::move(resumed).error());
    return snapshot;
  }

  // The same from a copy, without a pause: nothing is lost by it. `margin` as V4 says: 3 records of
  // the largest size; too small a one lets damaged records through. nullopt if moved from.
  template <class F>
  std::optional<Snapshot> copy(std::size_t margin, F&& f) {
    internal::expect_callable(f);
    if (event_.fd() < 0) return std::nullopt;
    expect_own();
    copy_.resize(snapshots_.size());
    return snapshots_.copy(copy_, margin, f);
  }

  // The outputs that were refused while snapshots paused the ring, as the kernel counts them; the
  // Lost that says so comes with the next output. nullopt before Linux 6.0, or if moved from.
  std::optional<std::uint64_t> lost() const noexcept;

  // -1 if moved from. It is never readable to poll.
  int fd() const noexcept { return event_.fd(); }

 private:
  // Until the end of the scope, also if the callback throws.
  struct Pause {
    explicit Pause(OverwritableRing& of) noexcept : ring{of} {}
    ~Pause() {
      if (pauses) static_cast<void>(ring.resume());
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    std::expected<void, RingsError> end() {
      pauses = false;
      return ring.resume();
    }
    OverwritableRing& ring;
    bool pauses = true;
  };

  static std::expected<OverwritableRing, RingsError> open_pages(const PerfEventArray& array,
                                                                std::uint32_t cpu,
                                                                std::size_t page_count);
  PERFRING_HIDDEN OverwritableRing(os::Fd map, internal::OutputEvent event,
                                   const Snapshots<>& snapshots) noexcept;

  void expect_own() const noexcept {
    assert(event_.is_own() && "a forked child has no mapping of the ring");
  }
  std::expected<void, RingsError> settle(Settle how);
  std::expected<void, RingsError> resume();

  os::Fd map_;
  internal::OutputEvent event_;
  Snapshots<> snapshots_;
  std::vector<std::byte> copy_;
  std::optional<WriterBarrier> barrier_;
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_OVERWRITABLE_RING_H_
