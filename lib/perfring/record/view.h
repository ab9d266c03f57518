#ifndef PERFRING_RECORD_VIEW_H_
#define PERFRING_RECORD_VIEW_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// View: the base of all record views. decode() (decode.h) constructs a view and checks every
// length: no accessor leaves the record. A view refers to the record's bytes and to the Layout,
// which must both outlive it; a record in a ring is valid until the ring's tail passes it.
// R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"
#include "perfring/record/layout.h"

namespace perfring::record {

namespace internal {

// A record with a checked size.
struct Raw {
  perf_event_header header;
  Bytes bytes;  // header.size of them
  const Layout& layout;
};

}  // namespace internal

// The fields that sample_type selects, at the end of every record that is not a sample, if
// attr.sample_id_all is set. A field with the name of a sample's field has the same meaning.
class SampleId {
 public:
  // Without any field.
  SampleId() = default;

  using Word = std::optional<std::uint64_t>;
  using Half = std::optional<std::uint32_t>;
  Half pid() const noexcept { return get<std::uint32_t>(Layout::Trailer::Tid); }
  Half tid() const noexcept { return get<std::uint32_t>(Layout::Trailer::Tid, 4); }
  Word time() const noexcept { return get<std::uint64_t>(Layout::Trailer::Time); }
  Word id() const noexcept { return get<std::uint64_t>(Layout::Trailer::Id); }
  Word stream_id() const noexcept { return get<std::uint64_t>(Layout::Trailer::StreamId); }
  Half cpu() const noexcept { return get<std::uint32_t>(Layout::Trailer::Cpu); }
  Half res() const noexcept { return get<std::uint32_t>(Layout::Trailer::Cpu, 4); }
  Word identifier() const noexcept { return get<std::uint64_t>(Layout::Trailer::Identifier); }

 private:
  friend class SideBand;
  // Precondition: layout.sample_id_size() bytes are at `data`.
  SampleId(const std::byte* data, const Layout& layout) noexcept : data_{data}, layout_{&layout} {}

  template <class T>
  std::optional<T> get(Layout::Trailer field, std::size_t offset = 0) const noexcept {
    if (data_ == nullptr || layout_->at(field) == Layout::kAbsent) return std::nullopt;
    return internal::load<T>(data_ + layout_->at(field) + offset);
  }

  const std::byte* data_ = nullptr;
  const Layout* layout_ = nullptr;
};

class View {
 public:
  // The header as it was when the record was decoded.
  const perf_event_header& header() const noexcept { return header_; }
  // PERF_RECORD_MISC_KERNEL, _USER and so on.
  unsigned cpumode() const noexcept { return header_.misc & PERF_RECORD_MISC_CPUMODE_MASK; }
  // The record, header included.
  Bytes bytes() const noexcept { return {data_, header_.size}; }
  // The bytes between the known fields and sample_id: a later kernel's fields, usually none. In a
  // KSYMBOL, a BPF_EVENT and a TEXT_POKE, the bytes after sample_id, which mean nothing (R28).
  Bytes rest() const noexcept {
    return {data_ + rest_begin_, static_cast<std::size_t>(rest_end_ - rest_begin_)};
  }
  const Layout& layout() const noexcept { return *layout_; }

  // For decode(), like each view's parse(), which may be called again without harm. Precondition:
  // the last sample_id_size bytes are sample_id's.
  View(const internal::Raw& raw, std::size_t sample_id_size) noexcept
      : data_{raw.bytes.data()},
        layout_{&raw.layout},
        header_{raw.header},
        rest_end_{static_cast<std::uint16_t>(raw.header.size - sample_id_size)} {}

 protected:
  // A walk from the first field to sample_id.
  internal::Walk walk() const noexcept { return {data_, sizeof(perf_event_header), rest_end_}; }
  // Turns the rest of a walk into rest(). Returns the field that was too short, or null.
  const char* end_of(const internal::Walk& walk) noexcept {
    rest_begin_ = static_cast<std::uint16_t>(walk.at());
    return walk.too_short();
  }
  void rest_is_from(std::size_t begin) noexcept {
    rest_begin_ = static_cast<std::uint16_t>(begin);
    rest_end_ = header_.size;
  }

  template <class T>
  T get(std::size_t offset) const noexcept {
    return internal::load<T>(data_ + offset);
  }
  std::string_view string(internal::Place place) const noexcept {
    return {reinterpret_cast<const char*>(data_ + place.at), place.count};
  }
  Bytes bytes(internal::Place place) const noexcept { return {data_ + place.at, place.count}; }
  U64s words(internal::Place place) const noexcept { return {data_ + place.at, place.count}; }
  const std::byte* data() const noexcept { return data_; }

 private:
  const std::byte* data_;
  const Layout* layout_;
  perf_event_header header_;
  std::uint16_t rest_begin_ = sizeof(perf_event_header);
  std::uint16_t rest_end_;
};

// A record that is not a sample.
class SideBand : public View {
 public:
  SampleId sample_id() const noexcept {
    if (sample_id_size() == 0) return {};
    return {data() + sample_id_begin_, layout()};
  }
  std::size_t sample_id_size() const noexcept { return sample_id_size_; }

  SideBand(const internal::Raw& raw, std::size_t sample_id_size) noexcept
      : View{raw, sample_id_size},
        sample_id_begin_{static_cast<std::uint16_t>(raw.bytes.size() - sample_id_size)},
        sample_id_size_{static_cast<std::uint8_t>(sample_id_size)} {}

 protected:
  // Like end_of(), for a record that the kernel may have made too long: sample_id follows the
  // fields directly (R28).
  const char* end_after_sample_id(const internal::Walk& walk) noexcept {
    const char* const field = end_of(walk);
    if (field == nullptr && sample_id_size_ != 0) {
      sample_id_begin_ = static_cast<std::uint16_t>(walk.at());
      rest_is_from(walk.at() + sample_id_size_);
    }
    return field;
  }

 private:
  std::uint16_t sample_id_begin_;
  std::uint8_t sample_id_size_;
};

// A record with too few bytes for a mandatory field, or with lengths that do not fit. `field` is
// the uapi's name of the first such field; "size" is header.size, which is below 8 or above the
// number of bytes given.
struct Malformed {
  perf_event_header header;  // all zeroes if the bytes have no room for one
  const char* field;
  Bytes bytes;
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_VIEW_H_
