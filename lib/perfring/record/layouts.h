#ifndef PERFRING_RECORD_LAYOUTS_H_
#define PERFRING_RECORD_LAYOUTS_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Layouts: for several events that write to one ring (SET_OUTPUT). Only PERF_SAMPLE_IDENTIFIER
// names the event that wrote a record: at +8 of a sample, and, if sample_id_all is set, in the last
// 8 bytes of sample_id in every other record (R12). PERF_EVENT_IOC_ID returns the id for an event's
// descriptor.
// R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/mappings.h"
#include "perfring/record/view.h"

namespace perfring::record {

class Layouts {
 public:
  struct Entry {
    std::uint64_t id;
    const Layout* layout;
  };

  // Looks ids up in `entries`, to which it refers. Returns nullopt unless they are sorted by id,
  // each id occurs once, and each layout has IDENTIFIER and sample_id_all: otherwise an id could be
  // anything. `stray`, if not null, is the layout of samples with none of these ids (R25).
  static std::optional<Layouts> over(std::span<const Entry> entries,
                                     const Layout* stray = nullptr) noexcept {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i != 0 && entries[i].id <= entries[i - 1].id) return std::nullopt;
      const Layout* const layout = entries[i].layout;
      const bool tells = layout != nullptr && layout->has(PERF_SAMPLE_IDENTIFIER);
      if (!tells || !layout->sample_id_all()) return std::nullopt;
    }
    return Layouts{entries, stray};
  }

  // Returns the layout of the event with this id; null if there is none.
  const Layout* find(std::uint64_t id) const noexcept {
    const auto place =
        std::ranges::lower_bound(entries_, id, {}, [](const Entry& entry) { return entry.id; });
    return place != entries_.end() && place->id == id ? place->layout : nullptr;
  }
  // Returns the layout of the event with the id in the sample_id that begins at offset `begin` of
  // the record. Null if no event has that id.
  const Layout* find_after(Bytes record, std::size_t begin) const noexcept {
    for (const Entry& entry : entries_) {
      const std::size_t end = begin + entry.layout->sample_id_size();
      if (end > record.size()) continue;
      if (internal::load_once<std::uint64_t>(record.data() + end - 8) == entry.id) {
        return entry.layout;
      }
    }
    return nullptr;
  }
  const Layout* stray() const noexcept { return stray_; }

 private:
  Layouts(std::span<const Entry> entries, const Layout* stray) noexcept
      : entries_{entries}, stray_{stray} {}

  std::span<const Entry> entries_;
  const Layout* stray_;
};

namespace internal {

// Returns the offset of sample_id in a record that the kernel may have made too long (R28); 0 for
// other records.
inline std::size_t after_fields(const Raw& none) noexcept {
  const auto end_of = [&](const SideBand& view) {
    return static_cast<std::size_t>(view.rest().data() - none.bytes.data());
  };
  const Any any = decode_side_band(none);
  if (const auto* const view = std::get_if<Ksymbol>(&any)) return end_of(*view);
  if (const auto* const view = std::get_if<BpfEvent>(&any)) return end_of(*view);
  if (const auto* const view = std::get_if<TextPoke>(&any)) return end_of(*view);
  return 0;
}

inline const Layout* layout_of_side_band(const Raw& none, const Layouts& layouts) noexcept {
  const std::size_t begin = after_fields(none);
  const Layout* const layout = begin == 0 ? nullptr : layouts.find_after(none.bytes, begin);
  const std::byte* const last = none.bytes.data() + none.bytes.size() - 8;
  return layout != nullptr ? layout : layouts.find(load_once<std::uint64_t>(last));
}

}  // namespace internal

// Like decode() with one layout, but uses the layout of the event that wrote the record. A record
// without room for an identifier is a Malformed. A record of an event that is not in `layouts` is
// an Unknown with an empty layout, unless it is a sample and `layouts` has a stray layout.
inline Any decode(Bytes bytes, const Layouts& layouts) noexcept {
  static constexpr Layout kNone{};
  if (bytes.size() < sizeof(perf_event_header)) return decode(bytes, kNone);
  const auto word = internal::load_once<std::uint64_t>(bytes.data());
  const auto header = std::bit_cast<perf_event_header>(word);
  if (header.size < sizeof header || header.size > bytes.size()) return decode(bytes, kNone);
  const internal::Raw none{header, bytes.first(header.size), kNone};
  if (header.size < sizeof header + 8) return Malformed{header, "identifier", none.bytes};
  const bool is_sample = header.type == PERF_RECORD_SAMPLE;
  const Layout* layout =
      is_sample ? layouts.find(internal::load_once<std::uint64_t>(&bytes[sizeof header]))
                : internal::layout_of_side_band(none, layouts);
  if (layout == nullptr && is_sample) layout = layouts.stray();
  if (layout == nullptr) return internal::decode_unknown(none);
  const internal::Raw raw{header, none.bytes, *layout};
  return is_sample ? internal::decode_sample(raw) : internal::decode_side_band(raw);
}

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_LAYOUTS_H_
