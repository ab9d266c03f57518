#ifndef PERFRING_PERF_EVENT_H_
#define PERFRING_PERF_EVENT_H_
#if __cplusplus < 202002L
#error "perfring/perf_event.h needs C++20: compile with -std=c++20 or later"
#else

// The events that a drain delivers: PerfEvent = Sample | Lost | Malformed; and Overloaded, which
// combines one callback per kind of event into one.
//
// Units: sizes are in bytes, counts are of records.
// Lifetime: every Bytes here is borrowed from the ring, and valid only until the callback returns:
// the kernel may overwrite it as soon as the drain has ended. Copy what you keep.
// Threads: events are plain values; any thread may read one while the callback runs.
// Errors: none; nothing here throws or allocates.
//
// Mirrors aya's PerfEvent (Sample and Lost). Malformed is ours: aya hangs, panics or reads out of
// bounds in its place (DIVERGENCES.md).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>

namespace perfring {

using Bytes = std::span<const std::byte>;

namespace internal {

// Copies `head`, then `tail`, as far as `to` has room. Returns the number of bytes copied. If `to`
// overlaps `tail`, copying the head may overwrite the tail before it is copied.
inline std::size_t join(Bytes head, Bytes tail, std::span<std::byte> to) noexcept {
  const std::size_t in_head = head.size() < to.size() ? head.size() : to.size();
  if (in_head != 0) __builtin_memmove(to.data(), head.data(), in_head);
  const std::size_t room = to.size() - in_head;
  const std::size_t in_tail = tail.size() < room ? tail.size() : room;
  if (in_tail != 0) __builtin_memmove(to.data() + in_head, tail.data(), in_tail);
  return in_head + in_tail;
}

// Types that can be copied from any bytes. Not bool, which has only two valid values.
template <class T>
concept MadeOfBytes = std::is_trivially_copyable_v<T> && std::is_same_v<T, std::remove_cv_t<T> > &&
                      !std::is_array_v<T> && !std::is_same_v<T, bool>;

}  // namespace internal

// One PERF_RECORD_SAMPLE: the payload that was passed to bpf_perf_event_output(), followed by 0 to
// 7 bytes of the kernel's padding (which the kernel counts as payload and does not initialise;
// kernel/events/core.c: perf_output_sample() at v6.18). The payload is `head` followed by `tail`;
// tail is empty unless the payload straddles the ring's end.
struct Sample {
  Bytes head;
  Bytes tail;

  // Padding included.
  std::size_t size() const noexcept { return head.size() + tail.size(); }

  // Copies the first bytes, as many as the sample has and `to` has room for. Returns the number of
  // bytes copied: 0 for an empty span. Copies the head first, so a `to` that overlaps the tail may
  // get bytes of the head in the tail's place.
  std::size_t copy_to(std::span<std::byte> to) const noexcept {
    return internal::join(head, tail, to);
  }

  // Returns the sample in one piece: the ring's own bytes unless it straddles the ring's end,
  // otherwise a copy in `scratch`, which must outlive the result. Returns an empty span if the copy
  // does not fit (a Sample that straddles is never empty itself). size() bytes of scratch always
  // suffice.
  Bytes contiguous(std::span<std::byte> scratch) const noexcept {
    if (tail.empty()) return head;
    if (head.empty()) return tail;
    if (scratch.size() < size()) return {};
    return scratch.first(copy_to(scratch));
  }

  // Returns the T at the beginning of the payload, in this machine's byte order, whatever its
  // alignment. Returns nullopt if the sample is shorter than a T. Precondition: every byte pattern
  // is a value of T, as it is for an enum with a fixed underlying type.
  template <internal::MadeOfBytes T>
  std::optional<T> as() const noexcept {
    std::byte bytes[sizeof(T)];
    if (copy_to(bytes) < sizeof(T)) return std::nullopt;
    return std::bit_cast<T>(bytes);
  }
};

// One PERF_RECORD_LOST: the kernel dropped `count` records before this place for lack of room
// (kernel/events/ring_buffer.c: __perf_output_begin() at v6.18).
struct Lost {
  std::uint64_t count;
};

// Why bytes are Malformed.
enum class Defect : std::uint8_t {
  // The record's end is known: only that record is skipped, and the drain continues.
  BadSample,       // too short for its length field, or its length exceeds the record
  BadLost,         // too short for its count
  UnexpectedType,  // neither SAMPLE nor LOST
  // No record's end is known: everything available is skipped, and the drain ends.
  BadSize,       // header.size is below 8, not a multiple of 8, or exceeds what is available
  BadPositions,  // data_head and data_tail are further apart than the ring, or not 8-aligned
};

// Returns the enumerator's name, or "unknown defect" for any other number. Static storage.
constexpr const char* to_string(Defect defect) noexcept {
  constexpr const char* names[]{"BadSample", "BadLost", "UnexpectedType", "BadSize",
                                "BadPositions"};
  static_assert(std::size(names) == static_cast<std::size_t>(Defect::BadPositions) + 1);
  const auto number = static_cast<std::size_t>(defect);
  return number < std::size(names) ? names[number] : "unknown defect";
}

// Bytes that break the kernel's contract, record headers included: `head`, then `tail` if they
// straddle the ring's end. Real kernels write such records when a payload exceeds 65516 bytes
// (u16 header.size, kernel/events/core.c: perf_prepare_header() at v6.18).
struct Malformed {
  Defect defect;
  Bytes head;
  Bytes tail;

  // Like Sample's.
  std::size_t size() const noexcept { return head.size() + tail.size(); }
  std::size_t copy_to(std::span<std::byte> to) const noexcept {
    return internal::join(head, tail, to);
  }
};

using PerfEvent = std::variant<Sample, Lost, Malformed>;

// Combines several callables into one callback for for_each and for_each_while, which call the one
// that takes the event at hand. Each kind of event needs a callable, so that none is overlooked; a
// callable that takes `const auto&` gets the kinds that the others do not name.
//
//   buffer.for_each(Overloaded{[&](const Sample& sample) { bytes += sample.size(); },
//                              [&](const Lost& lost) { dropped += lost.count; },
//                              [&](const Malformed&) { ++malformed; }});
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace perfring

#endif
#endif  // PERFRING_PERF_EVENT_H_
