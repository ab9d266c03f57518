#include "harness/record/perf_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "perfring/record/counts.h"
#include "perfring/record/uapi.h"

namespace perfring::record {
namespace {

constexpr std::string_view kOlder = "PERFFILE";
constexpr std::uint32_t kAuxtrace = 71;  // PERF_RECORD_AUXTRACE
using internal::kHeaderAttr;
using internal::kPipeHeaderSize;
using internal::kTracingData;

using Section = internal::PerfDataSection;
using Header = internal::PerfDataHeader;

// The number of bytes read at once. A record has at most 64 KiB.
constexpr std::size_t kWindow = 1 << 20;
constexpr std::size_t kRecordMax = 1 << 16;
// The limit for the sizes of attributes and ids. An id takes 8 bytes for each event and CPU.
constexpr std::uint64_t kSectionMax = 64 << 20;

// Returns the T at `offset`, or nullopt if the text is too short.
template <class T>
std::optional<T> at(std::string_view text, std::size_t offset) {
  if (offset > text.size() || text.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, text.data() + offset, sizeof value);
  return value;
}

std::optional<std::string> section_of(const PerfDataSource& source, const Section& section) {
  const bool is_inside =
      section.offset <= source.size && source.size - section.offset >= section.size;
  if (!is_inside || section.size > kSectionMax) return std::nullopt;
  std::string text(static_cast<std::size_t>(section.size), '\0');
  text.resize(source.read(section.offset, text));
  return text.size() == section.size ? std::optional{std::move(text)} : std::nullopt;
}

// Returns the length of the data that follow a record without being part of it: after an AUXTRACE,
// and in the pipe format after a HEADER_TRACING_DATA. Returns nullopt if the record is too short to
// have that length.
std::optional<std::uint64_t> trailing_length(std::string_view record, std::uint32_t type) {
  if (type == kAuxtrace) return at<std::uint64_t>(record, sizeof(perf_event_header));
  if (type != kTracingData) return 0;
  return at<std::uint32_t>(record, sizeof(perf_event_header));
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

PerfDataSource in_memory(std::string_view text) {
  return {text.size(), [text](std::uint64_t offset, std::span<char> into) {
            if (offset >= text.size()) return std::size_t{0};
            return text.copy(into.data(), into.size(), static_cast<std::size_t>(offset));
          }};
}

std::optional<PerfDataSource> in_file(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;
  const std::uint64_t size = std::filesystem::file_size(path, none);
  const auto file = std::make_shared<std::ifstream>(path, std::ios::binary);
  if (none || !*file) return std::nullopt;
  return PerfDataSource{size, [file, path](std::uint64_t offset, std::span<char> into) {
                          file->clear();
                          file->seekg(static_cast<std::streamoff>(offset));
                          file->read(into.data(), static_cast<std::streamsize>(into.size()));
                          // A failed read must not look like the end of the file.
                          if (file->bad() || (file->fail() && !file->eof())) {
                            throw std::system_error{errno, std::generic_category(),
                                                    "reading " + path};
                          }
                          return static_cast<std::size_t>(file->gcount());
                        }};
}

const char* perf_type_name(std::uint32_t type) {
  static constexpr std::array kNames{"HEADER_ATTR",
                                     "HEADER_EVENT_TYPE",
                                     "HEADER_TRACING_DATA",
                                     "HEADER_BUILD_ID",
                                     "FINISHED_ROUND",
                                     "ID_INDEX",
                                     "AUXTRACE_INFO",
                                     "AUXTRACE",
                                     "AUXTRACE_ERROR",
                                     "THREAD_MAP",
                                     "CPU_MAP",
                                     "STAT_CONFIG",
                                     "STAT",
                                     "STAT_ROUND",
                                     "EVENT_UPDATE",
                                     "TIME_CONV",
                                     "HEADER_FEATURE",
                                     "COMPRESSED",
                                     "FINISHED_INIT",
                                     "COMPRESSED2",
                                     "BPF_METADATA"};
  static_assert(kNames[kAuxtrace - kUserTypeStart] == std::string_view{"AUXTRACE"});
  const std::uint32_t at = type - kUserTypeStart;
  return at < kNames.size() ? kNames[at] : nullptr;
}

bool is_perf_data(std::string_view file) {
  return file.starts_with(internal::kMagic) || file.starts_with(internal::kSwappedMagic) ||
         file.starts_with(kOlder);
}

std::expected<PerfData, std::string> PerfData::over(PerfDataSource source) {
  PerfData read;
  read.source_ = std::move(source);
  if (auto done = read.read_header(); !done) return std::unexpected(done.error());
  if (auto done = read.tell_apart(); !done) return std::unexpected(done.error());
  return read;
}

std::expected<void, std::string> PerfData::read_header() {
  const auto begin =
      section_of(source_, {0, std::min<std::uint64_t>(sizeof(Header), source_.size)}).value_or("");
  if (!is_perf_data(begin)) return std::unexpected("it is not a perf.data file");
  if (begin.starts_with(kOlder)) {
    return std::unexpected(
        "it was recorded by a perf before Linux 3.1, in a format that perfring does not read");
  }
  if (!begin.starts_with(internal::kOwnMagic)) {
    return std::unexpected(
        "it was recorded on a machine with the other byte order: decode it on such a machine, or "
        "print it here with perf script -D");
  }
  if (at<std::uint64_t>(begin, 8) == kPipeHeaderSize) return read_piped_events();
  const auto header = at<Header>(begin, 0);
  if (!header || header->size < sizeof *header) return std::unexpected("its header is truncated");
  const auto attrs = section_of(source_, header->attrs);
  if (!attrs) return std::unexpected("its events are truncated");
  constexpr std::size_t kSmallest = 64 + sizeof(Section);  // PERF_ATTR_SIZE_VER0
  if (header->attr_size < kSmallest || attrs->empty() || attrs->size() % header->attr_size != 0) {
    return std::unexpected(fmt::format("its events have {} bytes each, in a section of {} bytes",
                                       header->attr_size, attrs->size()));
  }
  if (auto done = read_events(*attrs, static_cast<std::size_t>(header->attr_size)); !done) {
    return done;
  }
  if (header->data.offset > source_.size) return std::unexpected("its records are truncated");
  const std::uint64_t left = source_.size - header->data.offset;
  // A perf that was killed leaves a size of 0: everything up to the end of the file is records.
  const bool is_unfinished = header->data.size == 0 && left != 0;
  const std::uint64_t length = is_unfinished ? left : std::min(header->data.size, left);
  if (header->data.size > left) {
    cut_off_ =
        fmt::format("the file has only {} of its {} bytes of records", left, header->data.size);
  }
  begin_ = header->data.offset;
  end_ = begin_ + length;
  return {};
}

std::expected<void, std::string> PerfData::read_events(std::string_view attrs, std::size_t entry) {
  std::uint64_t all_ids = 0;
  for (std::size_t begin = 0; begin < attrs.size(); begin += entry) {
    PerfDataEvent event;
    const std::size_t size = entry - sizeof(Section);
    std::memcpy(&event.attr, attrs.data() + begin, std::min(size, sizeof event.attr));
    const auto section = at<Section>(attrs, begin + size);
    const auto ids = section ? section_of(source_, *section) : std::nullopt;
    if (!ids || (all_ids += ids->size()) > kSectionMax) {
      return std::unexpected("the ids of its events are truncated");
    }
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= ids->size(); i += sizeof(std::uint64_t)) {
      event.ids.push_back(*at<std::uint64_t>(*ids, i));
    }
    events_.push_back(std::move(event));
  }
  return {};
}

// Reads the events from HEADER_ATTR records (struct perf_record_header_attr,
// tools/lib/perf/include/perf/event.h): the attributes, of attr.size bytes, followed by the ids.
std::expected<void, std::string> PerfData::read_piped_events() {
  begin_ = kPipeHeaderSize;
  end_ = source_.size;
  bool is_whole = true;
  for_each([&](const Record& record) {
    const std::string_view text = text_of(record.bytes);
    if (at<perf_event_header>(text, 0)->type != kHeaderAttr) return true;
    const std::string_view content = text.substr(sizeof(perf_event_header));
    const auto size = at<std::uint32_t>(content, offsetof(perf_event_attr, size));
    is_whole = size && *size >= PERF_ATTR_SIZE_VER0 && *size <= content.size();
    if (!is_whole) return false;
    PerfDataEvent event;
    std::memcpy(&event.attr, content.data(), std::min<std::size_t>(*size, sizeof event.attr));
    for (std::size_t i = *size; i + sizeof(std::uint64_t) <= content.size();
         i += sizeof(std::uint64_t)) {
      event.ids.push_back(*at<std::uint64_t>(content, i));
    }
    events_.push_back(std::move(event));
    return true;
  });
  if (!is_whole || events_.empty()) return std::unexpected("its events are truncated");
  return {};
}

// Fails if a record's event cannot be determined. perf itself requires ids at the same place in all
// records (R12).
std::expected<void, std::string> PerfData::tell_apart() {
  for (const PerfDataEvent& event : events_) layouts_.emplace_back(event.attr);
  // Mappings have build ids if perf's tracking event asks for them: the other events ask for no
  // mappings.
  perf_event_attr attr = events_.front().attr;
  attr.build_id = std::ranges::any_of(events_, [](const auto& e) { return e.attr.build_id; });
  common_ = Layout{attr};
  if (events_.size() == 1) return {};
  for (std::size_t i = 0; i < events_.size(); ++i) {
    for (const std::uint64_t id : events_[i].ids) ids_.push_back({id, &layouts_[i]});
  }
  std::ranges::sort(ids_, {}, &Layouts::Entry::id);
  by_id_ = Layouts::over(ids_);
  const auto same = [&b = attr](const PerfDataEvent& each) {
    const perf_event_attr& a = each.attr;
    return a.sample_type == b.sample_type && a.read_format == b.read_format &&
           a.sample_id_all == b.sample_id_all && a.branch_sample_type == b.branch_sample_type &&
           a.sample_regs_user == b.sample_regs_user && a.sample_regs_intr == b.sample_regs_intr &&
           (a.mmap2 == 0 || a.build_id == b.build_id);
  };
  if (by_id_ || std::ranges::all_of(events_, same)) return {};
  return std::unexpected(
      "its events have different layouts, and the records have no id to tell them apart");
}

// Returns the bytes from `at` on: at least the length of the longest record, or all that are left.
Bytes PerfData::window(std::uint64_t at) {
  const auto wanted = std::min<std::uint64_t>(end_ - at, kRecordMax);
  if (at < window_at_ || at - window_at_ > window_.size() ||
      window_.size() - (at - window_at_) < wanted) {
    window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(end_ - at, kWindow)));
    window_.resize(source_.read(at, {reinterpret_cast<char*>(window_.data()), window_.size()}));
    window_at_ = at;
  }
  return Bytes{window_}.subspan(static_cast<std::size_t>(at - window_at_));
}

std::string PerfData::for_each(const std::function<bool(const Record&)>& each) {
  for (std::uint64_t begin = begin_; begin < end_;) {
    const Bytes left = window(begin);
    const auto header = at<perf_event_header>(text_of(left), 0);
    if (!header || header->size < sizeof *header || left.size() < header->size) {
      return cut_off_.empty() ? fmt::format("no record begins at byte {}", begin) : cut_off_;
    }
    const Record record{begin, left.first(header->size)};
    begin += header->size;
    const auto trailing = trailing_length(text_of(record.bytes), header->type);
    if (!each(record)) return {};
    if (!trailing || *trailing > end_ - begin) return "the data after a record are truncated";
    begin += *trailing;
  }
  return cut_off_;
}

Any PerfData::decoded(const Record& record) const {
  // perf's own records have no fields that depend on an event.
  static constexpr Layout kNone{};
  perf_event_header header;
  std::memcpy(&header, record.bytes.data(), sizeof header);
  if (header.type >= kUserTypeStart) return decode(record.bytes, kNone);
  // The records that perf synthesizes for existing tasks have the id 0, which no event has.
  if (!by_id_) return decode(record.bytes, common_);
  const Any by_id = decode(record.bytes, *by_id_);
  const bool is_nobodys =
      std::holds_alternative<Unknown>(by_id) && type_name(header.type) != nullptr;
  return is_nobodys ? decode(record.bytes, common_) : by_id;
}

std::size_t PerfData::event_of(const Any& record) const {
  const Layout* const layout = std::visit(
      [](const auto& view) -> const Layout* {
        if constexpr (requires { view.layout(); }) return &view.layout();
        return nullptr;
      },
      record);
  if (layout == &common_) return 0;
  const auto found =
      std::ranges::find_if(layouts_, [&](const Layout& each) { return &each == layout; });
  return static_cast<std::size_t>(found - layouts_.begin());
}

}  // namespace perfring::record
