#include "harness/record/existing_tasks.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <istream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/program/numbers.h"
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

}  // namespace perfring::record
