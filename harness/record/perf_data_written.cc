// Writes the beginning and the end of a perf.data file.

#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/perf_data.h"

namespace perfring::record {
namespace {

using Section = internal::PerfDataSection;
constexpr unsigned kTracingDataFeature = 1;  // HEADER_TRACING_DATA
constexpr unsigned kEventDescFeature = 12;   // HEADER_EVENT_DESC

template <class T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Size>
void append_sized(std::string& text, std::string_view content) {
  append(text, static_cast<Size>(content.size()));
  text += content;
}

// tools/perf/util/trace-event-info.c: tracing_data_get() at v6.18. Leaves kallsyms, printk's
// formats and the tasks' commands empty, which perf's reader accepts.
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

}  // namespace

std::string perf_data_header(std::span<const PerfDataEvent> events, std::uint64_t records,
                             bool finished) {
  std::size_t ids = 0;
  for (const PerfDataEvent& each : events) ids += each.ids.size();
  internal::PerfDataHeader header{};
  std::ranges::copy(internal::kOwnMagic, header.magic.begin());
  header.size = sizeof header;
  header.attr_size = sizeof(perf_event_attr) + sizeof(Section);
  header.attrs = {sizeof(internal::PerfDataHeader) + ids * sizeof(std::uint64_t),
                  events.size() * header.attr_size};
  header.data = {header.attrs.offset + header.attrs.size, records};
  if (finished) {
    header.features[0] = 1U << kEventDescFeature;
    if (has_tracepoints(events)) header.features[0] |= 1U << kTracingDataFeature;
  }
  std::string text;
  append(text, header);
  for (const PerfDataEvent& each : events) {
    for (const std::uint64_t id : each.ids) append(text, id);
  }
  std::uint64_t at_ids = sizeof(internal::PerfDataHeader);
  for (const PerfDataEvent& each : events) {
    append(text, each.attr);
    const Section section{at_ids, each.ids.size() * sizeof(std::uint64_t)};
    append(text, section);
    at_ids += section.size;
  }
  return text;
}

// The sections of the features, in the order of their bits, and then their contents.
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

// tools/perf/util/synthetic-events.c: perf_event__synthesize_attr(), _tracing_data() at v6.18.
std::string piped_perf_data_header(std::span<const PerfDataEvent> events,
                                   const PerfDataFeatures& features) {
  std::string text{internal::kOwnMagic};
  append(text, internal::kPipeHeaderSize);
  for (const PerfDataEvent& each : events) {
    const std::size_t size =
        sizeof(perf_event_header) + sizeof each.attr + each.ids.size() * sizeof(std::uint64_t);
    append(text, perf_event_header{internal::kHeaderAttr, 0, static_cast<std::uint16_t>(size)});
    append(text, each.attr);
    for (const std::uint64_t id : each.ids) append(text, id);
  }
  if (!has_tracepoints(events)) return text;
  std::string content = tracing_data(features);
  content.resize((content.size() + 7) / 8 * 8);
  constexpr std::size_t kSize = sizeof(perf_event_header) + sizeof(std::uint32_t);
  append(text, perf_event_header{internal::kTracingData, 0, kSize});
  append_sized<std::uint32_t>(text, content);
  return text;
}

}  // namespace perfring::record
