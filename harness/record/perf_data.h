#ifndef HARNESS_RECORD_PERF_DATA_H_
#define HARNESS_RECORD_PERF_DATA_H_

// perf.data files, which `perf record` writes and `perf script` reads (struct perf_file_header and
// struct perf_file_attr, tools/perf/util/header.h at v6.18):
//
//   header | ids of the events | attributes of the events | records from the kernel | features
//
// Of the features only EVENT_DESC and TRACING_DATA are written, without which perf cannot identify
// the events. No feature is read.

#include <linux/perf_event.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/layouts.h"

namespace perfring::record {

struct PerfDataEvent {
  perf_event_attr attr{};
  std::vector<std::uint64_t> ids;
};

namespace internal {

struct PerfDataSection {
  std::uint64_t offset;
  std::uint64_t size;
};

// struct perf_file_header.
struct PerfDataHeader {
  std::array<char, 8> magic;  // a u64 in the writer's byte order
  std::uint64_t size;
  std::uint64_t attr_size;
  PerfDataSection attrs;
  PerfDataSection data;
  PerfDataSection event_types;
  std::array<std::uint64_t, 4> features;
};
// The size in struct perf_pipe_file_header, which consists of the magic and this size.
inline constexpr std::uint64_t kPipeHeaderSize = 16;
// Types of records that perf itself writes.
inline constexpr std::uint32_t kHeaderAttr = 64;   // PERF_RECORD_HEADER_ATTR
inline constexpr std::uint32_t kTracingData = 66;  // PERF_RECORD_HEADER_TRACING_DATA
inline constexpr std::string_view kMagic = "PERFILE2";
inline constexpr std::string_view kSwappedMagic = "2ELIFREP";
inline constexpr std::string_view kOwnMagic =
    std::endian::native == std::endian::little ? kMagic : kSwappedMagic;

}  // namespace internal

// Returns the name, such as "FINISHED_ROUND", of a record type that perf itself writes into its
// files (enum perf_user_event_type, tools/lib/perf/include/perf/event.h at v6.18); null for any
// other type.
const char* perf_type_name(std::uint32_t type);
inline constexpr std::uint32_t kPerfCompressed = 81;  // contains records, which are not read
inline constexpr std::uint32_t kPerfCompressed2 = 83;

// Whether a file begins like a perf.data file of any version and byte order.
bool is_perf_data(std::string_view file);

// A perf.data file of any size, read in pieces.
struct PerfDataSource {
  std::uint64_t size = 0;
  // Reads from `offset` on until `into` is full or the file ends. Returns the number of bytes.
  std::function<std::size_t(std::uint64_t offset, std::span<char> into)> read;
};
// Reads from `text`, which must outlive the result.
PerfDataSource in_memory(std::string_view text);
// Returns nullopt if `path` is not a regular file or cannot be opened. A failed read throws
// std::system_error.
std::optional<PerfDataSource> in_file(const std::string& path);

class PerfData {
 public:
  PerfData(PerfData&&) = default;
  PerfData& operator=(PerfData&&) = default;
  // Reads the header and the events, from the file format or the pipe format (`perf record -o -`),
  // which has the events between the records. Fails, with the reason, on the other byte order, a
  // version that is too old, a header that points outside the file, or events that have
  // indistinguishable records.
  static std::expected<PerfData, std::string> over(PerfDataSource source);
  static std::expected<PerfData, std::string> over(std::string_view text) {
    return over(in_memory(text));
  }

  const std::vector<PerfDataEvent>& events() const { return events_; }
  struct Record {
    std::uint64_t at;  // offset in the file
    Bytes bytes;
  };
  // Passes each complete record to `each`, until it returns false. A record's bytes are valid until
  // `each` returns. Types from 64 on are perf's own records. The data after an AUXTRACE record are
  // skipped. Returns the reason if the records end before the place that the header gives,
  // otherwise "".
  std::string for_each(const std::function<bool(const Record&)>& each);

  Any decoded(const Record& record) const;
  // Returns the index of the event that wrote a record, or events().size() if it is unknown.
  std::size_t event_of(const Any& record) const;

 private:
  PerfData() = default;
  std::expected<void, std::string> read_header();
  std::expected<void, std::string> read_events(std::string_view attrs, std::size_t entry);
  std::expected<void, std::string> read_piped_events();
  std::expected<void, std::string> tell_apart();
  Bytes window(std::uint64_t at);

  PerfDataSource source_;
  std::uint64_t begin_ = 0;  // the records are in [begin_, end_) of the file
  std::uint64_t end_ = 0;
  std::vector<PerfDataEvent> events_;
  std::vector<Layout> layouts_;
  Layout common_;  // of records without an id, as those that perf writes for existing tasks
  std::vector<Layouts::Entry> ids_;
  std::optional<Layouts> by_id_;   // refers to ids_
  std::vector<std::byte> window_;  // a piece of the file, which begins at window_at_
  std::uint64_t window_at_ = 0;
  std::string cut_off_;
};

// The features by which perf identifies the events (HEADER_EVENT_DESC, HEADER_TRACING_DATA).
struct PerfDataFeatures {
  std::vector<std::string> names;  // one for each event, in the same order
  struct Tracepoint {
    std::string system;
    std::string format;  // contents of its format file
  };
  std::vector<Tracepoint> tracepoints;
  // Contents of these two files in tracefs's events/, if there are tracepoints.
  std::string header_page;
  std::string header_event;
};

// Returns the beginning of a file, which `records` bytes of records must follow. `finished`: the
// features follow the records.
std::string perf_data_header(std::span<const PerfDataEvent> events, std::uint64_t records,
                             bool finished = false);
// Returns the beginning of the pipe format. Nothing follows its records.
std::string piped_perf_data_header(std::span<const PerfDataEvent> events,
                                   const PerfDataFeatures& features);
// Returns the features, which follow `records` bytes of records and end the file.
std::string perf_data_features(std::span<const PerfDataEvent> events, std::uint64_t records,
                               const PerfDataFeatures& features);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_PERF_DATA_H_
