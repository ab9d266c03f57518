// Writes the beginning and the end of a perf.data file, and synthesizes records from /proc for the
// tasks that exist before an event is enabled, as `perf record` does
// (tools/perf/util/synthetic-events.c at v6.18: perf_event__synthesize_threads(), _modules(),
// _kernel_mmap()).

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <istream>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/program/numbers.h"
#include "harness/record/perf_data.h"
#include "perfring/os/cpus.h"

namespace perfring::record {
namespace {

namespace fs = std::filesystem;

struct TaskId {
  std::uint32_t pid;
  std::uint32_t tid;
};
constexpr TaskId kKernel{~std::uint32_t{0}, 0};

// Appends records, each with the sample_id that an event with these attributes writes.
class Records {
 public:
  Records(const perf_event_attr& attr, std::uint64_t id) : attr_{attr}, id_{id} {}

  void begin(std::uint32_t type, std::uint16_t misc) {
    record_.clear();
    put(perf_event_header{type, misc, 0});
  }
  template <class T>
  void put(const T& value) {
    record_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // Appends the text, its NUL, and zeroes up to a multiple of 8.
  void text(std::string_view value) {
    record_.append(value);
    do record_ += '\0';
    while (record_.size() % sizeof(std::uint64_t) != 0);
  }
  void end(const TaskId& task) {
    if (attr_.sample_id_all) sample_id(task);
    const auto size = static_cast<std::uint16_t>(record_.size());
    std::memcpy(record_.data() + offsetof(perf_event_header, size), &size, sizeof size);
    all_ += record_;
  }
  std::string take() && { return std::move(all_); }

 private:
  // kernel/events/core.c: __perf_event__output_id_sample()
  void sample_id(const TaskId& task) {
    const std::uint64_t type = attr_.sample_type;
    if (type & PERF_SAMPLE_TID) put(task);
    if (type & PERF_SAMPLE_TIME) put(std::uint64_t{0});
    if (type & PERF_SAMPLE_ID) put(id_);
    if (type & PERF_SAMPLE_STREAM_ID) put(id_);
    if (type & PERF_SAMPLE_CPU) put(std::uint64_t{0});
    if (type & PERF_SAMPLE_IDENTIFIER) put(id_);
  }

  const perf_event_attr& attr_;
  const std::uint64_t id_;
  std::string record_;
  std::string all_;
};

// Returns the entries of `folder` that have a number as their name; none if `folder` is gone.
std::vector<std::uint32_t> numbered(const fs::path& folder) {
  std::vector<std::uint32_t> numbers;
  std::error_code gone;
  for (fs::directory_iterator each{folder, gone}, end; !gone && each != end; each.increment(gone)) {
    const auto value = parse_number<std::uint32_t>(each->path().filename().native());
    if (value) numbers.push_back(*value);
  }
  return numbers;
}

std::uint32_t parent_of(const fs::path& process) {
  std::ifstream in{process / "status"};
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("PPid:\t"))
      return parse_number<std::uint32_t>(std::string_view{line}.substr(6)).value_or(0);
  }
  return 0;
}

void put_task(Records& records, const TaskId& task, std::uint32_t parent, std::string_view comm) {
  const bool leads = task.pid == task.tid;
  records.begin(PERF_RECORD_FORK, 0);
  records.put(task.pid);
  records.put(leads ? parent : task.pid);
  records.put(task.tid);
  records.put(leads ? parent : task.pid);
  records.put(std::uint64_t{0});
  records.end(task);
  records.begin(PERF_RECORD_COMM, 0);
  records.put(task);
  records.text(comm);
  records.end(task);
}

// Parses a line of /proc/PID/maps and, as perf does, writes a record only if it is executable:
// "7f1c1a000000-7f1c1a021000 r-xp 00001000 fe:01 1234    /usr/bin/true"
void put_map(Records& records, const TaskId& task, const std::string& line) {
  std::istringstream in{line};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string access;
  char mark = 0;
  in >> std::hex >> begin >> mark >> end >> access >> offset >> major >> mark >> minor >>
      std::dec >> inode;
  if (!in || access.size() != 4 || access[2] != 'x') return;
  std::string name;
  std::getline(in >> std::ws, name);
  records.begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
  records.put(task);
  records.put(begin);
  records.put(end - begin);
  records.put(offset);
  records.put(major);
  records.put(minor);
  records.put(inode);
  records.put(std::uint64_t{0});  // ino_generation
  const int read = access[0] == 'r' ? PROT_READ : 0;
  const int write = access[1] == 'w' ? PROT_WRITE : 0;
  records.put(static_cast<std::uint32_t>(read | write | PROT_EXEC));
  records.put(static_cast<std::uint32_t>(access[3] == 's' ? MAP_SHARED : MAP_PRIVATE));
  records.text(name.empty() ? "//anon" : name);
  records.end(task);
}

void put_process(Records& records, std::uint32_t pid) {
  const fs::path process = fs::path{"/proc"} / std::to_string(pid);
  const std::uint32_t parent = parent_of(process);
  for (const std::uint32_t tid : numbered(process / "task")) {
    const fs::path name = process / "task" / std::to_string(tid) / "comm";
    const std::string comm = os::read_line(name.c_str()).value_or("");
    if (!comm.empty()) put_task(records, {pid, tid}, parent, comm);
  }
  std::ifstream maps{process / "maps"};
  for (std::string line; std::getline(maps, line);) put_map(records, {pid, pid}, line);
}

// Writes the map of the kernel's or a module's code. `symbol` is the address of
// [kernel.kallsyms]_text, from which perf computes how far the kernel was relocated.
void put_kernel_map(Records& records, std::uint64_t begin, std::uint64_t length,
                    std::uint64_t symbol, std::string_view name) {
  records.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
  records.put(kKernel);
  records.put(begin);
  records.put(length);
  records.put(symbol);
  records.text(name);
  records.end(kKernel);
}

// Parses /proc/kallsyms ("ffffffff81000000 T _text") and /proc/modules ("name 16384 1 - Live
// 0xffffffffc0000000"). An address of 0 is hidden from this user (kernel.kptr_restrict).
void put_kernel(Records& records) {
  std::ifstream symbols{"/proc/kallsyms"};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  for (std::string line; end == 0 && std::getline(symbols, line);) {
    if (line.ends_with(" _text")) begin = std::strtoull(line.c_str(), nullptr, 16);
    if (line.ends_with(" _etext")) end = std::strtoull(line.c_str(), nullptr, 16);
  }
  if (begin < end) put_kernel_map(records, begin, end - begin, begin, "[kernel.kallsyms]_text");
  std::ifstream modules{"/proc/modules"};
  for (std::string line; std::getline(modules, line);) {
    std::istringstream in{line};
    std::string name;
    std::string skipped;
    std::uint64_t length = 0;
    std::uint64_t at = 0;
    in >> name >> length >> skipped >> skipped >> skipped >> std::hex >> at;
    if (in && at != 0) put_kernel_map(records, at, length, 0, "[" + name + "]");
  }
}

}  // namespace

std::string existing_tasks(const perf_event_attr& attr, std::uint64_t id, std::optional<pid_t> of) {
  Records records{attr, id};
  put_kernel(records);
  if (of.value_or(0) != 0) {
    put_process(records, static_cast<std::uint32_t>(*of));
  } else if (of) {
    for (const std::uint32_t pid : numbered("/proc")) put_process(records, pid);
  }
  return std::move(records).take();
}

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
