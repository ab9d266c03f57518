#ifndef PERFRING_EVENT_TRACEPOINT_FIELDS_H_
#define PERFRING_EVENT_TRACEPOINT_FIELDS_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// TracepointFormat: the fields of a tracepoint's raw data, by name and type, from the tracepoint's
// format file in tracefs.
//
//   const auto format = TracepointFormat::of("block:block_rq_complete");
//   const auto sector = format->field<std::uint64_t>("sector");  // checked here, once
//   sampler->for_each([&](const Delivered& each) {
//     const auto* const sample = std::get_if<record::Sample>(&each.record);
//     if (sample != nullptr) use(sector->of(*sample->raw()));
//   });
//
// Fields are read in place: only the number is copied. No byte outside the raw data is read,
// whatever the data contains: a field that is cut off, or points outside, is nullopt.
//
// Units: offsets and sizes are bytes.
// Lifetime: a Field is a value and does not need its format. A text refers to the raw data.
// Threads: as for any value.
// Errors: of(), parse() and field() report what is wrong, and what there is instead.
// Kernel: kernel/trace/trace_events.c: f_show(), include/trace/stages at v6.18 (__data_loc,
// __rel_loc).

#include <concepts>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/system.h"
#include "perfring/export.h"
#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"

namespace perfring::event {

// A field as described in the format file.
struct FieldFormat {
  enum class Place : std::uint8_t {
    Here,          // at offset
    DataLocation,  // a u32 is there: its low half is the offset, its high half the length
    Relative,      // the same, but the offset counts from the end of the u32
  };
  std::string name;
  std::string type;  // as declared: "char", "pid_t", "unsigned long"
  std::size_t offset = 0;
  std::size_t size = 0;
  bool is_signed = false;
  bool is_array = false;
  Place place = Place::Here;
};

// An integer in the raw data. T has the declared size and sign of the field. A bool is true unless
// all of its bytes are 0.
template <std::integral T>
class NumberField {
 public:
  explicit NumberField(std::size_t offset) noexcept : offset_{offset} {}
  std::optional<T> of(Bytes raw) const noexcept {
    if (raw.size() < sizeof(T) || raw.size() - sizeof(T) < offset_) return std::nullopt;
    // Only two values of a byte are valid in a bool.
    std::conditional_t<std::is_same_v<T, bool>, unsigned char, T> value;
    static_assert(sizeof value == sizeof(T));
    std::memcpy(&value, raw.data() + offset_, sizeof value);
    return static_cast<T>(value);
  }

 private:
  std::size_t offset_;
};

// Characters in the raw data, up to the first NUL.
class TextField {
 public:
  explicit TextField(const FieldFormat& format) noexcept
      : offset_{format.offset}, size_{format.size}, place_{format.place} {}
  std::optional<std::string_view> of(Bytes raw) const noexcept {
    std::size_t begin = offset_;
    std::size_t length = size_;
    if (place_ != FieldFormat::Place::Here) {
      constexpr std::size_t kSize = sizeof(std::uint32_t);
      if (raw.size() < kSize || raw.size() - kSize < offset_) return std::nullopt;
      // Loaded once, so that the checked value is the one used, although the ring may change.
      const auto location = record::internal::load_once<std::uint32_t>(raw.data() + offset_);
      begin = location & 0xffff;
      length = location >> 16;
      if (place_ == FieldFormat::Place::Relative) begin += offset_ + kSize;
    }
    if (begin > raw.size() || raw.size() - begin < length) return std::nullopt;
    const auto* const text = reinterpret_cast<const char*>(raw.data() + begin);
    const std::string_view all{text, length};
    return all.substr(0, all.find('\0'));
  }

 private:
  std::size_t offset_;
  std::size_t size_;
  FieldFormat::Place place_;
};

class PERFRING_EXPORT TracepointFormat {
 public:
  // Reads the format of a tracepoint, such as "sched:sched_switch".
  static std::expected<TracepointFormat, Finding> of(const std::string& tracepoint,
                                                     System& system = real_system());
  // Parses the text of a format file.
  static std::expected<TracepointFormat, Finding> parse(std::string_view text);

  const std::vector<FieldFormat>& fields() const noexcept { return fields_; }

  // Returns the field with that name, if it is an integer with T's size and sign, and not an array.
  template <std::integral T>
  std::expected<NumberField<T>, Finding> field(std::string_view name) const {
    const auto found = number(name, sizeof(T), std::is_signed_v<T>);
    if (!found) return std::unexpected(found.error());
    return NumberField<T>{*found};
  }
  // Returns the field with that name, if it is an array of char.
  std::expected<TextField, Finding> text(std::string_view name) const;

 private:
  std::expected<std::size_t, Finding> number(std::string_view name, std::size_t size,
                                             bool is_signed) const;
  PERFRING_HIDDEN std::expected<const FieldFormat*, Finding> find(std::string_view name) const;

  std::vector<FieldFormat> fields_;
};

}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_TRACEPOINT_FIELDS_H_
