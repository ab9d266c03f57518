#include "perfring/event/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "perfring/os/cpus.h"
#include "perfring/os/fd.h"

namespace perfring::event {
namespace {

std::unexpected<std::error_code> last_error() {
  return std::unexpected(std::error_code(errno, std::generic_category()));
}

class Real final : public System {
 public:
  int open(OpenArgs& args) override {
    internal::LongAttr attr = internal::long_attr_of(args);
    const long fd = ::syscall(SYS_perf_event_open, attr.bytes.data(), args.pid, args.cpu,
                              args.group_fd, args.flags | PERF_FLAG_FD_CLOEXEC);
    const int error = errno;
    if (fd < 0 && error == E2BIG) {
      std::memcpy(&args.attr.size, attr.bytes.data() + offsetof(perf_event_attr, size),
                  sizeof args.attr.size);
    }
    return fd < 0 ? -error : static_cast<int>(fd);
  }

  std::expected<std::string, std::error_code> read(const std::string& path) override {
    const os::Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (fd.get() < 0) return last_error();
    constexpr std::size_t kMost = std::size_t{1} << 20;
    std::string text;
    std::array<char, 4096> piece;
    while (text.size() < kMost) {
      const ssize_t length = ::read(fd.get(), piece.data(), piece.size());
      if (length < 0 && errno == EINTR) continue;
      if (length < 0) return last_error();
      if (length == 0) break;
      text.append(piece.data(), static_cast<std::size_t>(length));
    }
    return text;
  }

  std::expected<std::vector<std::string>, std::error_code> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder{::opendir(path.c_str()), &::closedir};
    if (folder == nullptr) return last_error();
    std::vector<std::string> names;
    int error = 0;
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(folder.get());
      error = errno;
      if (entry == nullptr) break;
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    // Part of a list would be taken for the whole list.
    if (error != 0) return std::unexpected(std::error_code(error, std::generic_category()));
    std::ranges::sort(names);
    return names;
  }

  std::expected<FileKind, std::error_code> look_at(const std::string& path) override {
    struct stat status{};
    struct statfs mounted{};
    if (::stat(path.c_str(), &status) != 0 || ::statfs(path.c_str(), &mounted) != 0) {
      return last_error();
    }
    FileKind kind{.size = static_cast<std::uint64_t>(status.st_size),
                  .file_system = static_cast<std::uint32_t>(mounted.f_type)};
    if (S_ISREG(status.st_mode)) kind.type = FileKind::Type::Regular;
    if (S_ISDIR(status.st_mode)) kind.type = FileKind::Type::Folder;
    return kind;
  }
};

// Returns the rest of the line that begins with `name`.
std::optional<std::string_view> line_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(name)) {
      const std::size_t value = line.find_first_not_of(" \t", name.size());
      return value == std::string_view::npos ? std::string_view{} : line.substr(value);
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

template <class T>
std::optional<T> number_in(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace

System& real_system() noexcept {
  static Real real;
  return real;
}

namespace internal {

LongAttr long_attr_of(const OpenArgs& args) noexcept {
  LongAttr long_attr;
  std::byte* const bytes = long_attr.bytes.data();
  std::memcpy(bytes, &args.attr, sizeof args.attr);
  std::uint32_t size = args.attr.size;
  constexpr std::uint32_t kWord = sizeof args.config3;
  std::uint32_t at = LongAttr::kConfigsAt;
  for (const __u64 config : {args.config3, args.config4}) {
    if (config != 0) {
      std::memcpy(bytes + at, &config, kWord);
      if (size < at + kWord) size = at + kWord;
    }
    at += kWord;
  }
  std::memcpy(bytes + offsetof(perf_event_attr, size), &size, sizeof size);
  return long_attr;
}

OpenArgs dummy() {
  OpenArgs args;
  args.attr.size = sizeof args.attr;
  args.attr.type = PERF_TYPE_SOFTWARE;
  args.attr.config = PERF_COUNT_SW_DUMMY;
  args.attr.exclude_kernel = 1;
  args.attr.exclude_hv = 1;
  return args;
}

bool may_get_foreign_id(const perf_event_attr& attr) noexcept {
  if (attr.type != PERF_TYPE_SOFTWARE) return false;
  // Each of these has its own perf_sample_data.
  constexpr std::array<std::uint64_t, 4> kAlone{PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK,
                                                PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_BPF_OUTPUT};
  return std::ranges::find(kAlone, attr.config) == kAlone.end();
}

std::optional<std::int64_t> Facts::number(const std::string& path) const {
  const auto text = system_.read(path);
  if (!text) return std::nullopt;
  return number_in<std::int64_t>(*text);
}

std::optional<std::int64_t> Facts::sysctl(const char* name) const {
  return number(std::string{"/proc/sys/kernel/"} + name);
}

bool Facts::is_capable(unsigned capability) const {
  const auto status = system_.read("/proc/self/status");
  const auto line = status ? line_of(*status, "CapEff:") : std::nullopt;
  const auto mask = line ? number_in<std::uint64_t>(*line, 16) : std::nullopt;
  return mask && (*mask >> capability & 1) != 0;
}

bool Facts::has_all_rights() const {
  constexpr unsigned kCapPerfmon = 38;  // CAP_PERFMON, since v5.8
  return is_capable(kCapPerfmon) || is_admin();
}

bool Facts::is_admin() const {
  return is_capable(CAP_SYS_ADMIN);
}

bool Facts::is_refused_by_paranoid(std::int64_t paranoid_from) const {
  return sysctl("perf_event_paranoid").value_or(2) >= paranoid_from && !has_all_rights();
}

std::optional<std::uint64_t> Facts::effective_uid(const std::string& process) const {
  const auto status = system_.read("/proc/" + process + "/status");
  const auto line = status ? line_of(*status, "Uid:") : std::nullopt;
  if (!line) return std::nullopt;
  const std::size_t second = line->find_first_of(" \t");
  return second == std::string_view::npos ? std::nullopt
                                          : number_in<std::uint64_t>(line->substr(second + 1));
}

bool Facts::is_running(pid_t pid) const {
  const auto folder = system_.look_at("/proc/" + std::to_string(pid));
  return folder || folder.error().value() != ENOENT;
}

std::optional<std::uint64_t> Facts::limit(const char* name) const {
  const auto limits = system_.read("/proc/self/limits");
  const auto line = limits ? line_of(*limits, name) : std::nullopt;
  return line ? number_in<std::uint64_t>(*line) : std::nullopt;
}

std::size_t Facts::open_files() const {
  const auto names = system_.list("/proc/self/fd");
  return names && !names->empty() ? names->size() - 1 : 0;  // without the folder's own
}

std::vector<std::uint32_t> Facts::cpus(const char* list) const {
  const auto text = system_.read(std::string{"/sys/devices/system/cpu/"} + list);
  if (!text) return {};
  return os::parse_cpu_list(text->substr(0, text->find('\n')))
      .value_or(std::vector<std::uint32_t>{});
}

std::optional<std::uint32_t> Facts::pmu_type(const std::string& pmu) const {
  if (pmu.empty() || pmu.find('/') != std::string::npos || pmu.starts_with('.'))
    return std::nullopt;
  const auto type = number(kDevices + pmu + "/type");
  if (!type) return std::nullopt;
  return static_cast<std::uint32_t>(*type);
}

std::optional<std::string> Facts::pmu_of(std::uint32_t type) const {
  const auto names = system_.list(kDevices);
  if (!names) return std::nullopt;
  const auto found =
      std::ranges::find_if(*names, [&](const std::string& name) { return pmu_type(name) == type; });
  if (found == names->end()) return std::nullopt;
  return *found;
}

bool Facts::has_cpu_pmu() const {
  const auto names = system_.list(kDevices);
  if (!names) return true;  // unknown
  return std::ranges::any_of(*names, [&](const std::string& name) {
    return name != "msr" && system_.read(kDevices + name + "/format/event").has_value();
  });
}

std::expected<std::string, std::error_code> tracing_events(System& system) {
  std::error_code why(ENOENT, std::generic_category());
  for (const char* const folder :
       {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"}) {
    const auto names = system.list(folder);
    if (names && !names->empty()) return std::string{folder};
    if (!names && names.error().value() != ENOENT) why = names.error();
  }
  return std::unexpected(why);
}

}  // namespace internal
}  // namespace perfring::event
