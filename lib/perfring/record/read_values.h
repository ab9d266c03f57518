#ifndef PERFRING_RECORD_READ_VALUES_H_
#define PERFRING_RECORD_READ_VALUES_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// ReadValues: the uapi's struct read_format, as in READ, in samples with PERF_SAMPLE_READ, and in
// the result of read(2) of an event (T12: perf_output_read_one() and perf_output_read_group(),
// kernel/events/core.c at v6.18).
// T: measured facts, in the project's harness/RECORD_FACTS.md.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"

namespace perfring::record {

// One event's count. `id` and `lost` are present if read_format has FORMAT_ID and FORMAT_LOST.
struct ReadValue {
  std::uint64_t value;
  std::optional<std::uint64_t> id;
  std::optional<std::uint64_t> lost;
};

class ReadValues {
 public:
  // Returns a view of the bytes that read(2) wrote, of which the first 65535 count; nullopt if they
  // are too few. Ignores unknown bits of read_format.
  static std::optional<ReadValues> over(Bytes bytes, std::uint64_t read_format) noexcept {
    internal::Walk walk{bytes.data(), 0, bytes.size() < 65535 ? bytes.size() : 65535};
    const internal::Place place = pass(walk, read_format);
    if (walk.too_short() != nullptr) return std::nullopt;
    return ReadValues{bytes.data(), place.count, read_format};
  }

  bool is_group() const noexcept { return (read_format_ & PERF_FORMAT_GROUP) != 0; }
  // The number of counts: 1, or the number of the group's members (`nr`).
  std::size_t size() const noexcept { return nr_; }
  // The leader is first, followed by its siblings. Ends the program if i is not below size()
  // (bytes.h).
  ReadValue operator[](std::size_t i) const noexcept {
    internal::expect_index(i, nr_);
    const std::size_t first = is_group() ? 1 + times() + i * member_words(read_format_) : 0;
    // A single event has its times between value and id.
    std::size_t next = is_group() ? first + 1 : 1 + times();
    ReadValue value{word(first), {}, {}};
    if (has(PERF_FORMAT_ID)) value.id = word(next++);
    if (has(PERF_FORMAT_LOST)) value.lost = word(next);
    return value;
  }
  std::optional<std::uint64_t> time_enabled() const noexcept {
    if (!has(PERF_FORMAT_TOTAL_TIME_ENABLED)) return std::nullopt;
    return word(1);
  }
  std::optional<std::uint64_t> time_running() const noexcept {
    if (!has(PERF_FORMAT_TOTAL_TIME_RUNNING)) return std::nullopt;
    return word(times());
  }

  // Passes over the values. Returns where they begin, and their number.
  static internal::Place pass(internal::Walk& walk, std::uint64_t read_format) noexcept {
    const std::size_t begin = walk.at();
    std::uint64_t nr = 1;
    if ((read_format & PERF_FORMAT_GROUP) != 0) {
      nr = walk.length<std::uint64_t>("nr");
      pass_times(walk, read_format);
    }
    const internal::Place values = walk.units(nr, 8 * member_words(read_format), "value");
    if ((read_format & PERF_FORMAT_GROUP) == 0) pass_times(walk, read_format);
    return {static_cast<std::uint16_t>(begin), values.count};
  }

 private:
  friend class Read;
  friend class Sample;
  // Precondition: pass() has passed over the values.
  ReadValues(const std::byte* data, std::size_t nr, std::uint64_t read_format) noexcept
      : data_{data}, nr_{nr}, read_format_{read_format} {}

  // Adds up sizes; the place is another one: a single event has its times between value and id.
  static void pass_times(internal::Walk& walk, std::uint64_t read_format) noexcept {
    walk.pass(8 * times(read_format), "time_enabled");
  }
  static std::size_t times(std::uint64_t format) noexcept {
    return one_if(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
           one_if(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
  }
  static std::size_t member_words(std::uint64_t format) noexcept {
    return 1 + one_if(format & PERF_FORMAT_ID) + one_if(format & PERF_FORMAT_LOST);
  }
  // std::popcount would call a function of libgcc on a processor without an instruction for it.
  static std::size_t one_if(std::uint64_t bit) noexcept { return bit != 0 ? 1 : 0; }
  std::size_t times() const noexcept { return times(read_format_); }
  bool has(std::uint64_t bit) const noexcept { return (read_format_ & bit) != 0; }
  std::uint64_t word(std::size_t i) const noexcept {
    return internal::load<std::uint64_t>(data_ + 8 * i);
  }

  const std::byte* data_;
  std::size_t nr_;
  std::uint64_t read_format_;
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_READ_VALUES_H_
