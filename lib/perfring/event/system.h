#ifndef PERFRING_EVENT_SYSTEM_H_
#define PERFRING_EVENT_SYSTEM_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// System: everything that opening events asks of the machine. real_system() is this machine. A test
// supplies a different System, and so can replay any user's refusals on any machine.
//
// Lifetime: a System outlives the calls that receive it; nothing keeps it longer.
// Threads: any number may use real_system() at the same time.
// Errors: each call has its own.
// R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <linux/perf_event.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "perfring/export.h"

namespace perfring::event {

// The arguments of one perf_event_open(2). open() adds PERF_FLAG_FD_CLOEXEC to `flags`.
struct OpenArgs {
  perf_event_attr attr{};
  pid_t pid = 0;  // 0: this thread, -1: every task; with PERF_FLAG_PID_CGROUP: a descriptor
  int cpu = -1;   // -1: wherever the task runs
  int group_fd = -1;
  unsigned long flags = 0;
  // The attributes' config3 and config4, if they are not 0. They are at offset 128 since Linux 6.3,
  // and at 136 in later versions, where the headers at build time may have no members. attr.size
  // counts as at least what they need.
  __u64 config3 = 0;
  __u64 config4 = 0;
};

struct FileKind {
  enum class Type : std::uint8_t { Regular, Folder, Other };
  Type type = Type::Other;
  std::uint64_t size = 0;
  std::uint64_t file_system = 0;  // statfs(2): f_type
};

class PERFRING_EXPORT System {
 public:
  // Calls perf_event_open(2). Returns the descriptor, which the caller owns, or -errno. With E2BIG,
  // the kernel has put the size of its own perf_event_attr into attr.size.
  virtual int open(OpenArgs& args) = 0;
  // Returns the whole contents of a small file, such as those in /proc and /sys.
  virtual std::expected<std::string, std::error_code> read(const std::string& path) = 0;
  // Returns the names in a folder, sorted, without those that begin with a dot.
  virtual std::expected<std::vector<std::string>, std::error_code> list(
      const std::string& path) = 0;
  // Calls stat(2) and statfs(2).
  virtual std::expected<FileKind, std::error_code> look_at(const std::string& path) = 0;

 protected:
  System() = default;
  System(const System&) = default;
  System& operator=(const System&) = default;
  ~System() = default;
};

PERFRING_EXPORT System& real_system() noexcept;

namespace internal {

// An event on this thread that counts nothing, and that any user may open.
OpenArgs dummy();

// perf_event_attr as the kernel will read it, long enough for config4.
struct LongAttr {
  static constexpr std::uint32_t kConfigsAt = 128;
  static constexpr std::size_t kSize =
      sizeof(perf_event_attr) < kConfigsAt + 16 ? kConfigsAt + 16 : sizeof(perf_event_attr);
  alignas(perf_event_attr) std::array<std::byte, kSize> bytes{};
};
LongAttr long_attr_of(const OpenArgs& args) noexcept;

// R25: Returns true if the kernel may give the event's samples the id of another event, which
// counts the same software event on the same CPU (kernel/events/core.c: do_perf_sw_event() at
// v6.18).
bool may_get_foreign_id(const perf_event_attr& attr) noexcept;

// Facts read from the files of a machine. A number that cannot be read is nullopt.
class Facts {
 public:
  explicit Facts(System& system) noexcept : system_{system} {}
  System& system() const noexcept { return system_; }

  // Returns the number in the first line of a file.
  std::optional<std::int64_t> number(const std::string& path) const;
  std::optional<std::int64_t> sysctl(const char* name) const;  // in kernel.
  // Returns true if a capability is effective. The numbers are those of linux/capability.h.
  bool is_capable(unsigned capability) const;
  // CAP_PERFMON or CAP_SYS_ADMIN.
  bool has_all_rights() const;
  bool is_admin() const;
  // Returns true if kernel.perf_event_paranoid is at least `paranoid_from` and no capability of the
  // caller overrides it.
  bool is_refused_by_paranoid(std::int64_t paranoid_from) const;
  std::optional<std::uint64_t> effective_uid(const std::string& process) const;
  bool is_running(pid_t pid) const;
  // Returns a soft limit from /proc/self/limits; nullopt also if it is unlimited.
  std::optional<std::uint64_t> limit(const char* name) const;
  // Returns the number of files that this process has open; 0 if unknown.
  std::size_t open_files() const;
  // Returns a CPU list from /sys/devices/system/cpu; empty if it cannot be read.
  std::vector<std::uint32_t> cpus(const char* list) const;
  // Returns the type of a PMU in /sys/bus/event_source/devices; and the PMU of a type.
  std::optional<std::uint32_t> pmu_type(const std::string& pmu) const;
  std::optional<std::string> pmu_of(std::uint32_t type) const;
  // Returns true if there is a PMU that counts what a processor does.
  bool has_cpu_pmu() const;

 private:
  System& system_;
};

inline constexpr const char* kDevices = "/sys/bus/event_source/devices/";

// Returns the folder of events in the mounted tracefs, or why it cannot be read.
std::expected<std::string, std::error_code> tracing_events(System& system);

}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_SYSTEM_H_
