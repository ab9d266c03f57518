#ifndef PERFRING_RECORD_LAYOUT_H_
#define PERFRING_RECORD_LAYOUT_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Layout: the fields that an event's records have, and their places, as far as the event's
// attributes determine them. Built once for an event; everything else is in the record.
//
// The order of a sample's fields is that of perf_output_sample(), and the order of sample_id's that
// of __perf_event__output_id_sample() (kernel/events/core.c at v6.18). Neither is the order of the
// bits (T1, T3).
// T: measured facts, in the project's harness/RECORD_FACTS.md.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <linux/perf_event.h>

#include "perfring/record/uapi.h"

namespace perfring::record {

class Layout {
 public:
  // sample_type 0, and no sample_id: only headers and the fields that every event has.
  constexpr Layout() noexcept = default;
  // Unknown bits of sample_type are kept, and their fields left in rest().
  constexpr explicit Layout(const perf_event_attr& attr) noexcept
      : sample_type_{attr.sample_type},
        read_format_{attr.read_format},
        branch_sample_type_{attr.branch_sample_type},
        regs_user_{attr.sample_regs_user},
        regs_intr_{attr.sample_regs_intr},
        sample_id_all_{attr.sample_id_all != 0},
        build_id_{attr.build_id != 0} {
    std::uint8_t at = sizeof(perf_event_header);
    for (std::size_t i = 0; i < kFixed.size(); ++i) {
      if (!has(kFixed[i].bit)) continue;
      fixed_[i] = at;
      at = static_cast<std::uint8_t>(at + 8);
    }
    fixed_end_ = at;
    if (!sample_id_all_) return;
    for (std::size_t i = 0; i < kTrailer.size(); ++i) {
      if (!has(kTrailer[i])) continue;
      trailer_[i] = sample_id_size_;
      sample_id_size_ = static_cast<std::uint8_t>(sample_id_size_ + 8);
    }
  }

  constexpr bool has(std::uint64_t sample_type_bit) const noexcept {
    return (sample_type_ & sample_type_bit) != 0;
  }
  constexpr std::uint64_t sample_type() const noexcept { return sample_type_; }
  constexpr std::uint64_t read_format() const noexcept { return read_format_; }
  constexpr std::uint64_t branch_sample_type() const noexcept { return branch_sample_type_; }
  constexpr std::uint64_t sample_regs_user() const noexcept { return regs_user_; }
  constexpr std::uint64_t sample_regs_intr() const noexcept { return regs_intr_; }
  constexpr bool sample_id_all() const noexcept { return sample_id_all_; }
  constexpr bool build_id() const noexcept { return build_id_; }

  // The size of sample_id at the end of every record that is not a sample.
  constexpr std::size_t sample_id_size() const noexcept { return sample_id_size_; }

  // The fields with the same offset in each sample, in order. Each takes 8 bytes.
  enum class Fixed { Identifier, Ip, Tid, Time, Addr, Id, StreamId, Cpu, Period };
  static constexpr std::uint64_t kFixedBits =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
      PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
      PERF_SAMPLE_PERIOD;
  // The field's offset in a sample; 0 if the sample lacks the field, or if it is not a Fixed.
  constexpr std::size_t at(Fixed field) const noexcept {
    const auto i = static_cast<std::size_t>(field);
    return i < fixed_.size() ? fixed_[i] : 0;
  }
  // The offset of the first byte after these fields.
  constexpr std::size_t fixed_end() const noexcept { return fixed_end_; }
  // The first of these fields for which a sample of `size` bytes has no room; the last of all if it
  // has room for each.
  constexpr const char* cut_off_at(std::size_t size) const noexcept {
    std::size_t i = 0;
    while (i + 1 < kFixed.size() && (fixed_[i] == 0 || fixed_[i] + std::size_t{8} <= size)) ++i;
    return kFixed[i].name;
  }

  // The fields of sample_id, in order.
  enum class Trailer { Tid, Time, Id, StreamId, Cpu, Identifier };
  static constexpr std::size_t kAbsent = 255;
  // The field's offset in sample_id; kAbsent if it is absent, or is not a Trailer.
  constexpr std::size_t at(Trailer field) const noexcept {
    const auto i = static_cast<std::size_t>(field);
    return i < trailer_.size() ? trailer_[i] : kAbsent;
  }

 private:
  struct FixedField {
    std::uint64_t bit;
    const char* name;
  };
  static constexpr std::array<FixedField, 9> kFixed{{{PERF_SAMPLE_IDENTIFIER, "identifier"},
                                                     {PERF_SAMPLE_IP, "ip"},
                                                     {PERF_SAMPLE_TID, "pid"},
                                                     {PERF_SAMPLE_TIME, "time"},
                                                     {PERF_SAMPLE_ADDR, "addr"},
                                                     {PERF_SAMPLE_ID, "id"},
                                                     {PERF_SAMPLE_STREAM_ID, "stream_id"},
                                                     {PERF_SAMPLE_CPU, "cpu"},
                                                     {PERF_SAMPLE_PERIOD, "period"}}};
  static constexpr std::array<std::uint64_t, 6> kTrailer{PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
                                                         PERF_SAMPLE_ID,  PERF_SAMPLE_STREAM_ID,
                                                         PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};

  std::uint64_t sample_type_ = 0;
  std::uint64_t read_format_ = 0;
  std::uint64_t branch_sample_type_ = 0;
  std::uint64_t regs_user_ = 0;
  std::uint64_t regs_intr_ = 0;
  bool sample_id_all_ = false;
  bool build_id_ = false;
  std::array<std::uint8_t, kFixed.size()> fixed_{};
  std::uint8_t fixed_end_ = sizeof(perf_event_header);
  std::array<std::uint8_t, kTrailer.size()> trailer_{kAbsent, kAbsent, kAbsent,
                                                     kAbsent, kAbsent, kAbsent};
  std::uint8_t sample_id_size_ = 0;
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_LAYOUT_H_
