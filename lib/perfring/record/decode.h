#ifndef PERFRING_RECORD_DECODE_H_
#define PERFRING_RECORD_DECODE_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// decode(): one record, whole and as the kernel wrote it, as a typed view of the same bytes.
//
//   const record::Layout layout{attr};
//   const record::Any any = record::decode(bytes, layout);
//   if (const auto* const sample = std::get_if<record::Sample>(&any)) use(sample->ip());
//
// decode() takes any bytes, which may change meanwhile: it reads no byte outside them, and loads
// each length once and checks it before it multiplies it. It keeps unknown types (Unknown) and
// unknown bytes (rest()); too few bytes are a Malformed. Nothing here allocates, copies, throws or
// makes a system call. The byte order is this machine's.
//
// Lifetime: a view refers to `bytes` and to `layout`.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"
#include "perfring/record/counts.h"
#include "perfring/record/layout.h"
#include "perfring/record/mappings.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/record/uapi.h"
#include "perfring/record/view.h"

namespace perfring::record {

// One type for each PERF_RECORD_* of the uapi, in its order.
using Any =
    std::variant<Unknown, Mmap, Lost, Comm, Exit, Throttle, Unthrottle, Fork, Read, Sample, Mmap2,
                 Aux, ItraceStart, LostSamples, Switch, SwitchCpuWide, Namespaces, Ksymbol,
                 BpfEvent, Cgroup, TextPoke, AuxOutputHwId, CallchainDeferred, Malformed>;

namespace internal {

// Constructs the T where it is returned: a copy would load its fields while they are still being
// stored.
template <class T>
Any parsed(const Raw& raw, std::size_t sample_id_size) noexcept {
  Any any{std::in_place_type<T>, raw, sample_id_size};
  const char* const field = std::get_if<T>(&any)->parse();
  if (field != nullptr) any = Malformed{raw.header, field, raw.bytes};
  return any;
}

inline Any decode_sample(const Raw& raw) noexcept {
  if (raw.layout.fixed_end() > raw.bytes.size()) {
    return Malformed{raw.header, raw.layout.cut_off_at(raw.bytes.size()), raw.bytes};
  }
  // A separate return, so that the compiler keeps only the fields that the caller uses.
  if (!raw.layout.has(~Layout::kFixedBits)) return Any{std::in_place_type<Sample>, raw, 0};
  return parsed<Sample>(raw, 0);
}

template <class T>
Any decode_as(const Raw& raw) noexcept {
  const std::size_t sample_id = raw.layout.sample_id_size();
  if (sample_id > raw.bytes.size() - sizeof(perf_event_header)) {
    return Malformed{raw.header, "sample_id", raw.bytes};
  }
  return parsed<T>(raw, sample_id);
}

inline Any decode_unknown(const Raw& raw) noexcept {
  const std::size_t sample_id = raw.layout.sample_id_size();
  const std::size_t body = raw.bytes.size() - sizeof(perf_event_header);
  const bool has_sample_id = sample_id <= body && raw.header.type < kUserTypeStart;
  return parsed<Unknown>(raw, has_sample_id ? sample_id : 0);
}

inline Any decode_side_band(const Raw& raw) noexcept {
  switch (raw.header.type) {
    case PERF_RECORD_MMAP:
      return decode_as<Mmap>(raw);
    case PERF_RECORD_LOST:
      return decode_as<Lost>(raw);
    case PERF_RECORD_COMM:
      return decode_as<Comm>(raw);
    case PERF_RECORD_EXIT:
      return decode_as<Exit>(raw);
    case PERF_RECORD_THROTTLE:
      return decode_as<Throttle>(raw);
    case PERF_RECORD_UNTHROTTLE:
      return decode_as<Unthrottle>(raw);
    case PERF_RECORD_FORK:
      return decode_as<Fork>(raw);
    case PERF_RECORD_READ:
      return decode_as<Read>(raw);
    case PERF_RECORD_MMAP2:
      return decode_as<Mmap2>(raw);
    case PERF_RECORD_AUX:
      return decode_as<Aux>(raw);
    case PERF_RECORD_ITRACE_START:
      return decode_as<ItraceStart>(raw);
    case PERF_RECORD_LOST_SAMPLES:
      return decode_as<LostSamples>(raw);
    case PERF_RECORD_SWITCH:
      return decode_as<Switch>(raw);
    case PERF_RECORD_SWITCH_CPU_WIDE:
      return decode_as<SwitchCpuWide>(raw);
    case PERF_RECORD_NAMESPACES:
      return decode_as<Namespaces>(raw);
    case PERF_RECORD_KSYMBOL:
      return decode_as<Ksymbol>(raw);
    case PERF_RECORD_BPF_EVENT:
      return decode_as<BpfEvent>(raw);
    case PERF_RECORD_CGROUP:
      return decode_as<Cgroup>(raw);
    case PERF_RECORD_TEXT_POKE:
      return decode_as<TextPoke>(raw);
    case PERF_RECORD_AUX_OUTPUT_HW_ID:
      return decode_as<AuxOutputHwId>(raw);
    case kCallchainDeferred:
      return decode_as<CallchainDeferred>(raw);
    default:
      return decode_unknown(raw);
  }
}

}  // namespace internal

// Takes any bytes, or none. Bytes after header.size are not part of the record, and not read.
inline Any decode(Bytes bytes, const Layout& layout) noexcept {
  if (bytes.size() < sizeof(perf_event_header)) return Malformed{{}, "header", bytes};
  const auto word = internal::load_once<std::uint64_t>(bytes.data());
  const auto header = std::bit_cast<perf_event_header>(word);
  if (header.size < sizeof header || header.size > bytes.size()) {
    return Malformed{header, "size", bytes};
  }
  const internal::Raw raw{header, bytes.first(header.size), layout};
  if (header.type == PERF_RECORD_SAMPLE) return internal::decode_sample(raw);
  return internal::decode_side_band(raw);
}
// Deleted: the view would refer to a layout that is gone.
Any decode(Bytes bytes, const Layout&& layout) = delete;

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_DECODE_H_
