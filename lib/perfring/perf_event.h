#ifndef PERFRING_PERF_EVENT_H_
#define PERFRING_PERF_EVENT_H_

// The events that a drain delivers: PerfEvent = Sample | Lost | Malformed.
//
// Lifetime: every Bytes here is borrowed from the ring. It is valid until the callback returns,
// and not longer: the kernel may overwrite it as soon as the drain has ended. Copy what you keep.
//
// Mirrors aya's PerfEvent (Sample and Lost); Malformed is ours, where aya hangs, panics or reads
// out of bounds (DIVERGENCES.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace perfring {

using Bytes = std::span<const std::byte>;

// One PERF_RECORD_SAMPLE: the payload that bpf_perf_event_output() was given, followed by 0 to 7
// bytes of the kernel's padding (which the kernel counts as payload and does not initialise).
// It is `head` followed by `tail`; tail is empty unless the payload straddles the ring's end.
struct Sample {
  Bytes head;
  Bytes tail;
};

// One PERF_RECORD_LOST: the kernel dropped `count` records before this place for want of room.
struct Lost {
  std::uint64_t count;
};

// The defect of a Malformed's bytes.
enum class Defect : std::uint8_t {
  // A record whose end is known: only that record is skipped, the drain goes on.
  BadSample,       // too short for its length field, or its length exceeds the record
  BadLost,         // too short for its count
  UnexpectedType,  // neither SAMPLE nor LOST
  // No record boundary is known: all that is available is skipped, the drain ends.
  BadSize,       // header.size is below 8, not a multiple of 8, or exceeds what is available
  BadPositions,  // data_head and data_tail are further apart than the ring, or not 8-aligned
};

constexpr const char* to_string(Defect defect) noexcept {
  constexpr std::array names{"BadSample", "BadLost", "UnexpectedType", "BadSize", "BadPositions"};
  static_assert(names.size() == static_cast<std::size_t>(Defect::BadPositions) + 1);
  const auto number = static_cast<std::size_t>(defect);
  return number < names.size() ? names[number] : "unknown defect";
}

// Bytes that break the kernel's contract, record headers included: `head`, then `tail` if they
// straddle the ring's end. Real kernels write such records when a payload exceeds 65516 bytes
// (u16 header.size, kernel/events/core.c: perf_prepare_header() at v6.18).
struct Malformed {
  Defect defect;
  Bytes head;
  Bytes tail;
};

using PerfEvent = std::variant<Sample, Lost, Malformed>;

}  // namespace perfring

#endif  // PERFRING_PERF_EVENT_H_
