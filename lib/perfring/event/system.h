#ifndef PERFRING_EVENT_SYSTEM_H_
#define PERFRING_EVENT_SYSTEM_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// System: everything that opening events asks of the machine. real_system() is this machine; a test
// gives another, and so replays any user's refusals on any machine.
//
// Lifetime: a System outlives the calls that it is given to; nothing keeps it longer.
// Threads: any may use real_system(), at once. Errors: each call has its own.
// R: facts that were measured, in the project's harness/RECORD_FACTS.md.

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

// The arguments of one perf_event_open(2). PERF_FLAG_FD_CLOEXEC is added to `flags`.
struct Ask {
  perf_event_attr attr{};
  pid_t pid = 0;  // 0: this thread, -1: every task; with PERF_FLAG_PID_CGROUP a descriptor
  int cpu = -1;   // -1: wherever the task runs
  int group_fd = -1;
  unsigned long flags = 0;
  // The attr's config3 and config4, if they are not 0: at 128 since Linux 6.3 and at 136 in later
  // ones, where the headers that this is built with may have nothing. attr.size counts as no less
  // than they need.
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
  // perf_event_open(2): the descriptor, which is the caller's, or -errno. With E2BIG the kernel has
  // put the size of its own perf_event_attr into attr.size.
  virtual int open(Ask& ask) = 0;
  // The whole of a small file, such as those of /proc and /sys.
  virtual std::expected<std::string, std::error_code> read(const std::string& path) = 0;
  // The names in a folder, sorted, without those that begin with a dot.
  virtual std::expected<std::vector<std::string>, std::error_code> list(
      const std::string& path) = 0;
  // stat(2) and statfs(2).
  virtual std::expected<FileKind, std::error_code> look_at(const std::string& path) = 0;

 protected:
  System() = default;
  System(const System&) = default;
  System& operator=(const System&) = default;
  ~System() = default;
};

PERFRING_EXPORT System& real_system() noexcept;

namespace internal {

// An event of this thread that counts nothing, which any user may open.
Ask dummy();

// perf_event_attr as the kernel is to read it, long enough for config4.
struct LongAttr {
  static constexpr std::uint32_t kConfigsAt = 128;
  static constexpr std::size_t kSize =
      sizeof(perf_event_attr) < kConfigsAt + 16 ? kConfigsAt + 16 : sizeof(perf_event_attr);
  alignas(perf_event_attr) std::array<std::byte, kSize> bytes{};
};
LongAttr long_attr_of(const Ask& ask) noexcept;

// R25: whether the kernel gives an event's samples the id of another one, of the same software
// event, where both are counted on one CPU (kernel/events/core.c: do_perf_sw_event() at v6.18).
bool may_have_anothers_id(const perf_event_attr& attr) noexcept;

// The files of a machine, read. A number that cannot be read is nullopt.
class Facts {
 public:
  explicit Facts(System& system) noexcept : system_{system} {}
  System& system() const noexcept { return system_; }

  // A number in the first line of a file.
  std::optional<std::int64_t> number(const std::string& path) const;
  std::optional<std::int64_t> sysctl(const char* name) const;  // of kernel.
  // Whether a capability is effective; the numbers are those of linux/capability.h.
  bool is_capable(unsigned capability) const;
  // CAP_PERFMON or CAP_SYS_ADMIN.
  bool may_all() const;
  bool is_admin() const;
  // Whether kernel.perf_event_paranoid is at least this and the caller has no right beyond it.
  bool is_kept_out(std::int64_t paranoid_from) const;
  std::optional<std::uint64_t> effective_uid(const std::string& process) const;
  bool is_running(pid_t pid) const;
  // A soft limit of /proc/self/limits; nullopt if it is unlimited, too.
  std::optional<std::uint64_t> limit(const char* name) const;
  // The number of files that this process has open now; 0 if it is not known.
  std::size_t open_files() const;
  // CPU lists of /sys/devices/system/cpu; empty if they cannot be read.
  std::vector<std::uint32_t> cpus(const char* list) const;
  // The type of a PMU in /sys/bus/event_source/devices.
  std::optional<std::uint32_t> pmu_type(const std::string& pmu) const;
  std::optional<std::string> pmu_of(std::uint32_t type) const;
  // Whether some PMU counts what a processor does.
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
