#ifndef PERFRING_SNAPSHOT_OVERWRITABLE_RING_H_
#define PERFRING_SNAPSHOT_OVERWRITABLE_RING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// OverwritableRing: one CPU's flight recorder. The kernel overwrites the oldest records and never
// stops. Snapshots deliver what is there, newest first (rules V1 to V8: snapshot/snapshot.h).
//
//   auto ring = OverwritableRing::open(*array, /*cpu=*/0, /*page_count=*/64);
//   ... and when something has happened:
//   ring->snapshot(Settle::Quickly, [](const PerfEvent& event) { handle(event); });
//
// Units: page counts are data pages; a margin is in bytes.
// Lifetime: move-only. It keeps the map's open file alive, like PerfEventArrayBuffer, and does not
// remove the map entry when it is destroyed. Events are valid until the callback returns. fork(2):
// as for PerfBuffer, snapshot() and copy() in a forked child end the program with an assertion, or
// are undefined with NDEBUG.
// Threads: one at a time.
// Errors: open() and snapshot() can fail. When memory runs out, they and copy() throw
// std::bad_alloc.
// Callbacks: as for Snapshots. When a snapshot() from within a callback ends, the kernel may write
// again, and the outer call's Snapshot::moved is then set.
// Kernel: kernel/events/ring_buffer.c: __perf_output_begin() with `backward`; kernel/events/core.c:
// perf_mmap() at v6.18.
// W: measured facts, in the project's harness/RINGS_FACTS.md.

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
#include "perfring/rings_error.h"
#include "perfring/snapshot/snapshot.h"
#include "perfring/wait/writer_barrier.h"

namespace perfring {

// How a snapshot makes sure that nobody writes any more. A writer that began before the pause
// continues for a while: at most 2 us were observed (W34). Any other value counts as Quickly.
enum class Settle : std::uint8_t {
  Quickly,     // until data_head has not moved for 20 us; sets Snapshot::moved if wrong
  Completely,  // until all running programs have ended: WriterBarrier, 8 ms or more
};

namespace internal {

// Returns when head() has not changed for 20 us of now(), or after 10 ms at the latest, so that it
// does not wait for a writer that never ends (Snapshot::moved is then set).
template <class Head, class Now>
void wait_until_head_stands(Head head, Now now) {
  constexpr std::chrono::microseconds stable_time{20};
  constexpr std::chrono::milliseconds most{10};
  const auto begin = now();
  auto since = begin;
  auto last = head();
  for (auto at = begin; at - since < stable_time && at - begin < most; at = now()) {
    const auto next = head();
    if (next != last) since = at;
    last = next;
  }
}

}  // namespace internal

class PERFRING_EXPORT OverwritableRing {
 public:
  // Opens the ring on `cpu` and puts it into that CPU's entry of the map, in place of what was
  // there. The page count may have any integer type except bool. A negative number, or one that
  // does not fit in size_t, is an InvalidPageCount (of the largest size_t).
  // Errors: those of PerfEventArray::open.
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  static std::expected<OverwritableRing, RingsError> open(const PerfEventArray& array,
                                                          std::uint32_t cpu, N page_count) {
    return open_pages(array, cpu, internal::page_count(page_count));
  }

  OverwritableRing(OverwritableRing&&) noexcept = default;
  OverwritableRing& operator=(OverwritableRing&&) = delete;

  // Passes the records since the previous snapshot to f, in place. Output is paused meanwhile: the
  // kernel refuses each output attempted then, and counts it in a later LOST record.
  // Errors: SyscallError, if the ring cannot be paused (EBADF if moved from) or there is no way to
  // wait for programs; or, after the records were passed, if the ring cannot be resumed and stays
  // paused.
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

  // The same from a copy, without a pause, so that nothing is lost. For `margin` see V4: 3 records
  // of the largest size. If it is too small, damaged records may be delivered. Returns nullopt if
  // moved from.
  template <class F>
  std::optional<Snapshot> copy(std::size_t margin, F&& f) {
    internal::expect_callable(f);
    if (event_.fd() < 0) return std::nullopt;
    expect_own();
    copy_.resize(snapshots_.size());
    return snapshots_.copy(copy_, margin, f);
  }

  // Returns how many outputs were refused while snapshots paused the ring, as the kernel counts
  // them; the Lost that reports them comes with the next output. Returns nullopt before Linux 6.0,
  // or if moved from.
  std::optional<std::uint64_t> lost() const noexcept;

  // -1 if moved from. poll(2) never reports it readable.
  int fd() const noexcept { return event_.fd(); }

 private:
  // Resumes output at the end of the scope, even if the callback throws.
  struct Pause {
    explicit Pause(OverwritableRing& of) noexcept : ring{of} {}
    ~Pause() {
      if (is_paused) static_cast<void>(ring.resume());
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    std::expected<void, RingsError> end() {
      is_paused = false;
      return ring.resume();
    }
    OverwritableRing& ring;
    bool is_paused = true;
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
#endif  // PERFRING_SNAPSHOT_OVERWRITABLE_RING_H_
