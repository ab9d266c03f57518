#ifndef PERFRING_RING_WIRE_H_
#define PERFRING_RING_WIRE_H_
#if __cplusplus < 202002L
#error "perfring/ring needs C++20: compile with -std=c++20 or later"
#else

// The layout of a ring and of its records, as far as a consumer needs it. Internal to Ring and
// Cursor.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"

namespace perfring::internal {

// Sizes in the wire format (include/uapi/linux/perf_event.h at v6.18, enum perf_event_type).
inline constexpr std::size_t kRawAt = sizeof(perf_event_header);     // SAMPLE: u32 size of raw
inline constexpr std::size_t kPayloadAt = kRawAt + sizeof(__u32);    // SAMPLE: raw
inline constexpr std::size_t kSampleSizeMin = 16;                    // 12, rounded up to 8 bytes
inline constexpr std::size_t kLostCountAt = kRawAt + sizeof(__u64);  // LOST: u64 id, u64 count
inline constexpr std::size_t kLostSizeMin = kLostCountAt + sizeof(__u64);
inline constexpr std::size_t kAlignment = 8;

// The number of bytes in a SAMPLE between its header and its raw size: 0, unless the Memory
// specializes it (merge/timed.h).
template <class M>
inline constexpr std::size_t kBeforeRaw = 0;

// The memory of a ring. The size of `data` is a power of two, at most 2 GiB; its address is a
// multiple of 8.
struct RingView {
  perf_event_mmap_page* page;
  Bytes data;
};

inline constexpr std::size_t kRingSizeMin = 8;
inline constexpr std::size_t kRingSizeMax = std::size_t{1} << 31;  // S9: half the range of Position

// Whether `a` and `b` share a byte. Precondition: neither extends past the last address.
inline bool overlap(Bytes a, Bytes b) noexcept {
  const auto at = [](Bytes bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); };
  return at(a) < at(b) ? at(b) - at(a) < a.size() : at(a) - at(b) < b.size();
}

inline Bytes page_of(const RingView& view) noexcept {
  return std::as_bytes(std::span{view.page, 1});
}
inline bool overlap(const RingView& a, const RingView& b) noexcept {
  return overlap(page_of(a), page_of(b)) || overlap(page_of(a), b.data) ||
         overlap(a.data, page_of(b)) || overlap(a.data, b.data);
}

// Returns nullopt for the arguments that Ring::over() rejects.
inline std::optional<RingView> view_of(perf_event_mmap_page& page, Bytes data) noexcept {
  const bool fits = data.data() != nullptr && std::has_single_bit(data.size()) &&
                    data.size() >= kRingSizeMin && data.size() <= kRingSizeMax &&
                    reinterpret_cast<std::uintptr_t>(data.data()) % kAlignment == 0 &&
                    !overlap(std::as_bytes(std::span{&page, 1}), data);
  if (!fits) return std::nullopt;
  return RingView{&page, data};
}
inline std::optional<RingView> view_of(std::span<std::byte> mapping,
                                       std::size_t page_size) noexcept {
  const bool has_page =
      mapping.data() != nullptr && page_size >= sizeof(perf_event_mmap_page) &&
      page_size < mapping.size() &&
      reinterpret_cast<std::uintptr_t>(mapping.data()) % alignof(perf_event_mmap_page) == 0;
  if (!has_page) return std::nullopt;
  return view_of(*reinterpret_cast<perf_event_mmap_page*>(mapping.data()),
                 mapping.subspan(page_size));
}

// std::min, written out because <algorithm> alone has as many lines as the rest of ring.h. Keep the
// `if` and the references: with `? :`, or by value, g++ and clang generate a different drain.
template <class T>
constexpr const T& smaller(const T& a, const T& b) noexcept {
  if (b < a) return b;
  return a;
}

}  // namespace perfring::internal

#endif
#endif  // PERFRING_RING_WIRE_H_
