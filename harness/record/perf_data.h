#ifndef HARNESS_RECORD_PERF_DATA_H_
#define HARNESS_RECORD_PERF_DATA_H_

// perf.data files: what `perf record` writes and `perf script` reads (struct perf_file_header and
// struct perf_file_attr, tools/perf/util/header.h at v6.18). A header, the attributes and ids of
// each event, and the records as the kernel wrote them, one behind the other. Of the features that
// perf puts behind them, those are written without which it does not know the events; none is read.

#include <linux/perf_event.h>
#include <sys/types.h>

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
  std::array<char, 8> magic;  // a u64 of the writer's byte order
  std::uint64_t size;
  std::uint64_t attr_size;
  PerfDataSection attrs;
  PerfDataSection data;
  PerfDataSection event_types;
  std::array<std::uint64_t, 4> features;
};
// struct perf_pipe_file_header: the magic, and this.
inline constexpr std::uint64_t kPipeHeaderSize = 16;
// Records that perf makes.
inline constexpr std::uint32_t kHeaderAttr = 64;   // PERF_RECORD_HEADER_ATTR
inline constexpr std::uint32_t kTracingData = 66;  // PERF_RECORD_HEADER_TRACING_DATA
inline constexpr std::string_view kMagic = "PERFILE2";
inline constexpr std::string_view kSwappedMagic = "2ELIFREP";
inline constexpr std::string_view kOwnMagic =
    std::endian::native == std::endian::little ? kMagic : kSwappedMagic;

}  // namespace internal

// The name of a type that perf itself writes into its files (enum perf_user_event_type,
// tools/lib/perf/include/perf/event.h at v6.18), as "FINISHED_ROUND"; null for any other.
const char* perf_type_name(std::uint32_t type);
inline constexpr std::uint32_t kPerfCompressed = 81;  // records in it, which are not read
inline constexpr std::uint32_t kPerfCompressed2 = 83;

// Whether a file begins as one of perf's, of whatever version or byte order.
bool is_perf_data(std::string_view file);

// The bytes of a file of any size.
struct PerfDataSource {
  std::uint64_t size = 0;
  // As many of `into` as there are from `offset` on.
  std::function<std::size_t(std::uint64_t offset, std::span<char> into)> read;
};
// Refers to `text`.
PerfDataSource in_memory(std::string_view text);
// nullopt if it is not a regular file, or cannot be opened. What cannot be read later throws
// std::system_error.
std::optional<PerfDataSource> in_file(const std::string& path);

class PerfData {
 public:
  PerfData(PerfData&&) = default;
  PerfData& operator=(PerfData&&) = default;
  // Both forms are read: a file's, and a pipe's (`perf record -o -`), where the events stand among
  // the records. An error says what is wrong: another byte order, a version that is too old, a
  // header that points outside, events whose records cannot be distinguished.
  static std::expected<PerfData, std::string> over(PerfDataSource source);
  static std::expected<PerfData, std::string> over(std::string_view text) {
    return over(in_memory(text));
  }

  const std::vector<PerfDataEvent>& events() const { return events_; }
  struct Record {
    std::uint64_t at;  // in the file
    Bytes bytes;
  };
  // Passes each record that is whole to `each`, which returns whether to go on; its bytes are valid
  // until then. perf's own records have types from 64 on; the bytes behind an AUXTRACE are not
  // records. Returns why the records end before the file says that they do; empty if they do not.
  std::string for_each(const std::function<bool(const Record&)>& each);

  Any decoded(const Record& record) const;
  // The event that wrote a record; events().size() if none is known.
  std::size_t event_of(const Any& record) const;

 private:
  PerfData() = default;
  std::expected<void, std::string> read_header();
  std::expected<void, std::string> read_events(std::string_view attrs, std::size_t entry);
  std::expected<void, std::string> read_piped_events();
  std::expected<void, std::string> tell_apart();
  Bytes window(std::uint64_t at);

  PerfDataSource source_;
  std::uint64_t begin_ = 0;  // of the records
  std::uint64_t end_ = 0;
  std::vector<PerfDataEvent> events_;
  std::vector<Layout> layouts_;
  std::vector<Layouts::Entry> ids_;
  std::optional<Layouts> by_id_;   // refers to ids_
  std::vector<std::byte> window_;  // of the file, from window_at_ on
  std::uint64_t window_at_ = 0;
  std::string cut_off_;
};

// The description of the events for perf (HEADER_EVENT_DESC, HEADER_TRACING_DATA).
struct PerfDataFeatures {
  std::vector<std::string> names;  // of the events, in their order
  struct Tracepoint {
    std::string system;
    std::string format;  // all of its format file
  };
  std::vector<Tracepoint> tracepoints;
  std::string header_page;  // those files of tracefs's events/, if there are tracepoints
  std::string header_event;
};

// The file's beginning, for `records` bytes of records, which follow it; `finished` once the
// features stand behind them.
std::string perf_data_header(std::span<const PerfDataEvent> events, std::uint64_t records,
                             bool finished = false);
// The beginning of one that is written to a pipe: nothing stands behind its records.
std::string piped_perf_data_header(std::span<const PerfDataEvent> events,
                                   const PerfDataFeatures& features);
// The end of a file.
std::string perf_data_features(std::span<const PerfDataEvent> events, std::uint64_t records,
                               const PerfDataFeatures& features);

// Records of the tasks that exist already, as an event with these attributes and this id writes
// them; their time is 0. The kernel writes FORK, COMM and MMAP2 for what happens from then on only,
// and without them perf knows a sample's program by its number alone, and no symbol of it. Of
// process `of`, or of all for 0; nullopt: the kernel's own map alone. A task that ends meanwhile,
// or that this user may not look at, is left out, as is the kernel's own map if its addresses are
// hidden.
std::string existing_tasks(const perf_event_attr& attr, std::uint64_t id, std::optional<pid_t> of);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_PERF_DATA_H_
