#include "harness/record/perf_data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

namespace perfring::record {
namespace {

constexpr std::string_view kMagic = "PERFILE2";  // a u64 of the writer's byte order
constexpr std::string_view kSwapped = "2ELIFREP";
constexpr std::string_view kOlder = "PERFFILE";
constexpr std::size_t kHeaderSize = 104;
constexpr std::uint32_t kAuxtrace = 71;  // PERF_RECORD_AUXTRACE
constexpr unsigned kTracingData = 1;     // HEADER_TRACING_DATA
constexpr unsigned kEventDesc = 12;      // HEADER_EVENT_DESC

struct Section {
  std::uint64_t offset;
  std::uint64_t size;
};

struct Header {
  std::array<char, 8> magic;
  std::uint64_t size;
  std::uint64_t attr_size;
  Section attrs;
  Section data;
  Section event_types;
  std::array<std::uint64_t, 4> features;
};
static_assert(sizeof(Header) == kHeaderSize);

// nullopt where the text is too short.
template <class T>
std::optional<T> at(std::string_view text, std::size_t offset) {
  if (offset > text.size() || text.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, text.data() + offset, sizeof value);
  return value;
}

std::optional<std::string_view> section_of(std::string_view file, const Section& section) {
  if (section.offset > file.size() || file.size() - section.offset < section.size) {
    return std::nullopt;
  }
  return file.substr(static_cast<std::size_t>(section.offset),
                     static_cast<std::size_t>(section.size));
}

template <class T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Size>
void append_sized(std::string& text, std::string_view content) {
  append(text, static_cast<Size>(content.size()));
  text += content;
}

// tools/perf/util/trace-event-info.c: tracing_data_get() at v6.18. Of kallsyms, printk's formats
// and the commands of tasks there is nothing, which its reader takes.
std::string tracing_data(const PerfDataFeatures& features) {
  std::string text = "\x17\x08\x44tracing0.6";
  text += '\0';
  text += std::endian::native == std::endian::big ? '\1' : '\0';
  text += static_cast<char>(sizeof(long));
  append(text, static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE)));
  text.append("header_page", sizeof "header_page");
  append_sized<std::uint64_t>(text, features.header_page);
  text.append("header_event", sizeof "header_event");
  append_sized<std::uint64_t>(text, features.header_event);
  append(text, std::uint32_t{0});  // formats of ftrace's own events
  std::map<std::string, std::vector<std::string_view> > systems;
  for (const auto& each : features.tracepoints) systems[each.system].push_back(each.format);
  append(text, static_cast<std::uint32_t>(systems.size()));
  for (const auto& [system, formats] : systems) {
    text.append(system.c_str(), system.size() + 1);
    append(text, static_cast<std::uint32_t>(formats.size()));
    for (const std::string_view format : formats) append_sized<std::uint64_t>(text, format);
  }
  append(text, std::uint32_t{0});  // kallsyms
  append(text, std::uint32_t{0});  // printk's formats
  append(text, std::uint64_t{0});  // commands
  return text;
}

// tools/perf/util/header.c: write_event_desc() at v6.18.
std::string event_desc(std::span<const PerfDataEvent> events, const PerfDataFeatures& features) {
  std::string text;
  append(text, static_cast<std::uint32_t>(events.size()));
  append(text, static_cast<std::uint32_t>(sizeof(perf_event_attr)));
  for (std::size_t i = 0; i < events.size(); ++i) {
    append(text, events[i].attr);
    append(text, static_cast<std::uint32_t>(events[i].ids.size()));
    std::string name = i < features.names.size() ? features.names[i] : "";
    name.resize(name.size() + 1);
    append_sized<std::uint32_t>(text, name);
    for (const std::uint64_t id : events[i].ids) append(text, id);
  }
  return text;
}

bool has_tracepoints(std::span<const PerfDataEvent> events) {
  return std::ranges::any_of(
      events, [](const PerfDataEvent& each) { return each.attr.type == PERF_TYPE_TRACEPOINT; });
}

std::string_view own_magic() {
  return std::endian::native == std::endian::little ? kMagic : kSwapped;
}

}  // namespace

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
  return file.starts_with(kMagic) || file.starts_with(kSwapped) || file.starts_with(kOlder);
}

std::expected<PerfData, std::string> PerfData::over(std::string_view file) {
  if (!is_perf_data(file)) return std::unexpected("it is no perf.data file");
  if (file.starts_with(kOlder)) {
    return std::unexpected("it is of perf before Linux 3.1, in a form that is not read");
  }
  if (!file.starts_with(own_magic())) {
    return std::unexpected(
        "it was made on a machine of the other byte order: decode it on one of those");
  }
  const auto size = at<std::uint64_t>(file, 8);
  if (size == 16) {
    return std::unexpected("it has the form of a pipe: write it with perf record -o FILE");
  }
  const auto header = at<Header>(file, 0);
  if (!header || header->size < kHeaderSize) return std::unexpected("its header is cut off");
  PerfData read;
  read.file_ = file;
  const auto attrs = section_of(file, header->attrs);
  if (!attrs) return std::unexpected("its events are cut off");
  constexpr std::size_t kSmallest = 64 + sizeof(Section);  // PERF_ATTR_SIZE_VER0
  if (header->attr_size < kSmallest || attrs->empty() || attrs->size() % header->attr_size != 0) {
    return std::unexpected(
        fmt::format("its events have {} bytes each, of {}", header->attr_size, attrs->size()));
  }
  if (auto done = read.read_events(*attrs, static_cast<std::size_t>(header->attr_size)); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = read.tell_apart(); !done) return std::unexpected(done.error());
  if (header->data.offset > file.size()) return std::unexpected("its records are cut off");
  const std::uint64_t left = file.size() - header->data.offset;
  // A size of 0 is of a perf that was killed: all that is there are records.
  const bool is_unfinished = header->data.size == 0 && left != 0;
  const std::uint64_t length = is_unfinished ? left : std::min(header->data.size, left);
  if (header->data.size > left) {
    read.cut_off_ = fmt::format("the file has {} of {} bytes of records", left, header->data.size);
  }
  const auto begin = static_cast<std::size_t>(header->data.offset);
  read.read_records(begin, begin + static_cast<std::size_t>(length));
  return read;
}

std::expected<void, std::string> PerfData::read_events(std::string_view attrs, std::size_t entry) {
  for (std::size_t begin = 0; begin < attrs.size(); begin += entry) {
    PerfDataEvent event;
    const std::size_t size = entry - sizeof(Section);
    std::memcpy(&event.attr, attrs.data() + begin, std::min(size, sizeof event.attr));
    const auto section = at<Section>(attrs, begin + size);
    const auto ids = section ? section_of(file_, *section) : std::nullopt;
    if (!ids) return std::unexpected("the ids of its events are cut off");
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= ids->size(); i += sizeof(std::uint64_t)) {
      event.ids.push_back(*at<std::uint64_t>(*ids, i));
    }
    events_.push_back(std::move(event));
  }
  return {};
}

// perf itself tells records apart by ids at the same place in all (R12).
std::expected<void, std::string> PerfData::tell_apart() {
  for (const PerfDataEvent& event : events_) layouts_.emplace_back(event.attr);
  if (events_.size() == 1) return {};
  for (std::size_t i = 0; i < events_.size(); ++i) {
    for (const std::uint64_t id : events_[i].ids) ids_.push_back({id, &layouts_[i]});
  }
  std::ranges::sort(ids_, {}, &Layouts::Entry::id);
  by_id_ = Layouts::over(ids_);
  const auto same = [this](const PerfDataEvent& each) {
    const perf_event_attr& a = each.attr;
    const perf_event_attr& b = events_.front().attr;
    return a.sample_type == b.sample_type && a.read_format == b.read_format &&
           a.sample_id_all == b.sample_id_all && a.branch_sample_type == b.branch_sample_type &&
           a.sample_regs_user == b.sample_regs_user && a.sample_regs_intr == b.sample_regs_intr &&
           a.build_id == b.build_id;
  };
  if (by_id_ || std::ranges::all_of(events_, same)) return {};
  return std::unexpected("its events differ, and their records do not say whose they are");
}

void PerfData::read_records(std::size_t begin, std::size_t end) {
  while (begin < end) {
    const auto header = at<perf_event_header>(file_.substr(0, end), begin);
    if (!header || header->size < sizeof *header || end - begin < header->size) {
      if (cut_off_.empty()) cut_off_ = fmt::format("no record begins at byte {}", begin);
      return;
    }
    const auto* const data = reinterpret_cast<const std::byte*>(file_.data()) + begin;
    records_.push_back({begin, Bytes{data, header->size}});
    begin += header->size;
    if (header->type != kAuxtrace) continue;
    const auto behind = at<std::uint64_t>(file_, records_.back().at + sizeof *header);
    if (header->size < 16 || !behind || *behind > end - begin) {
      cut_off_ = "the AUX area data are cut off";
      return;
    }
    begin += static_cast<std::size_t>(*behind);
  }
}

Any PerfData::decoded(const Record& record) const {
  // Made by perf: nothing of an event is in it.
  static constexpr Layout kNone{};
  perf_event_header header;
  std::memcpy(&header, record.bytes.data(), sizeof header);
  if (header.type >= kUserTypeStart) return decode(record.bytes, kNone);
  // perf adds records of what there was before, without an id: 0, which is none's.
  if (!by_id_) return decode(record.bytes, layouts_.front());
  const Any by_id = decode(record.bytes, *by_id_);
  const bool is_nobodys =
      std::holds_alternative<Unknown>(by_id) && type_name(header.type) != nullptr;
  return is_nobodys ? decode(record.bytes, layouts_.front()) : by_id;
}

std::size_t PerfData::event_of(const Any& record) const {
  const Layout* const layout = std::visit(
      [](const auto& view) -> const Layout* {
        if constexpr (requires { view.layout(); }) return &view.layout();
        return nullptr;
      },
      record);
  const auto found =
      std::ranges::find_if(layouts_, [&](const Layout& each) { return &each == layout; });
  return static_cast<std::size_t>(found - layouts_.begin());
}

std::string perf_data_header(std::span<const PerfDataEvent> events, std::uint64_t records,
                             bool finished) {
  std::size_t ids = 0;
  for (const PerfDataEvent& each : events) ids += each.ids.size();
  Header header{};
  std::ranges::copy(own_magic(), header.magic.begin());
  header.size = kHeaderSize;
  header.attr_size = sizeof(perf_event_attr) + sizeof(Section);
  header.attrs = {kHeaderSize + ids * sizeof(std::uint64_t), events.size() * header.attr_size};
  header.data = {header.attrs.offset + header.attrs.size, records};
  if (finished) {
    header.features[0] = 1U << kEventDesc;
    if (has_tracepoints(events)) header.features[0] |= 1U << kTracingData;
  }
  std::string text;
  append(text, header);
  for (const PerfDataEvent& each : events) {
    for (const std::uint64_t id : each.ids) append(text, id);
  }
  std::uint64_t at_ids = kHeaderSize;
  for (const PerfDataEvent& each : events) {
    append(text, each.attr);
    const Section section{at_ids, each.ids.size() * sizeof(std::uint64_t)};
    append(text, section);
    at_ids += section.size;
  }
  return text;
}

// The sections of the features, in the order of their bits, and then what they are about.
std::string perf_data_features(std::span<const PerfDataEvent> events, std::uint64_t records,
                               const PerfDataFeatures& features) {
  std::vector<std::string> contents;
  if (has_tracepoints(events)) contents.push_back(tracing_data(features));
  contents.push_back(event_desc(events, features));
  std::uint64_t at =
      perf_data_header(events, records).size() + records + contents.size() * sizeof(Section);
  std::string text;
  for (const std::string& each : contents) {
    append(text, Section{at, each.size()});
    at += each.size();
  }
  for (const std::string& each : contents) text += each;
  return text;
}

}  // namespace perfring::record
