#ifndef PERFRING_EVENT_EVENT_H_
#define PERFRING_EVENT_EVENT_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Event: what to observe. A value with its own defaults.
//
//   const Event faults = software(PERF_COUNT_SW_PAGE_FAULTS).callchain();
//   const Event switches = tracepoint("sched:sched_switch");
//   const Event cycles =
//       hardware(PERF_COUNT_HW_CPU_CYCLES).or_else(software(PERF_COUNT_SW_CPU_CLOCK));
//
// The caller's settings (period(), sample(), ...) are stored separately from the event's own
// defaults and applied on top of them when the event is opened. So anything that the caller did not
// set keeps its default, in whatever order the functions are called. If two calls contradict each
// other, the later one wins.
//
// Every event puts IDENTIFIER, TID, TIME (CLOCK_MONOTONIC) and CPU into each record by default.
//
//   event                     one sample per         with        kernel
//   tracepoint, probe         occurrence             RAW         included
//   cpu-clock, hardware, raw  1/99 s                 IP, PERIOD  if allowed
//   page faults               occurrence             IP, ADDR    if allowed
//   breakpoint                occurrence             IP, ADDR    if allowed
//   context-switches and
//   other software events     occurrence             IP          included (R11)
//   changes                   (records, no samples)              if allowed
//   pmu                       (counts only)                      included
//
// Units: periods are numbers of events, frequencies are in hertz, addresses and offsets in bytes.
// Lifetime: a value. Copies share nothing that changes. A moved-from event has no name, so attr()
// fails; it can be assigned to.
// Threads: as for any value.
// Errors: only attr() fails, for names that do not exist on this machine. Numbers of any size are
// accepted: check() (check.h) reports what the kernel would refuse. A text that is passed to the
// kernel (a function, a path, a filter) ends at its first NUL. Functions throw only std::bad_alloc;
// attr() also passes on what adjust()'s callback throws.
// Kernel: include/uapi/linux/perf_event.h at v6.18.
// R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <linux/perf_event.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfring/event/system.h"
#include "perfring/export.h"

namespace perfring::event {

// A finding about a request: an error in it, or a consequence of it.
struct Finding {
  enum class Severity : std::uint8_t {
    Refused,  // the kernel refuses it, or a Sampler refuses the Request
    Silent,   // the kernel accepts it, but no records come, or too few
  };
  Severity severity = Severity::Refused;
  std::string field;   // the uapi's name: "sample_period", "type", "pid"
  std::string says;    // the problem, in one sentence
  std::string advice;  // what to change
};

// Any other value counts as Included.
enum class Kernel : std::uint8_t {
  Included,
  Excluded,
  IfAllowed,  // excluded if the caller has no right to it, and only then
};

enum class EventKind : std::uint8_t {
  Software,
  Tracepoint,
  Kprobe,
  Kretprobe,
  Uprobe,
  Uretprobe,
  Hardware,
  Cache,
  Raw,
  Pmu,
  Breakpoint,
  Changes,
};

class PERFRING_EXPORT Event {
 public:
  // Takes a sample each time that this many events have occurred; 0 only counts. Replaces
  // frequency().
  [[nodiscard]] Event period(std::uint64_t every) const;
  // Takes about this many samples per second. Replaces period().
  [[nodiscard]] Event frequency(std::uint64_t hertz) const;
  // Adds fields to each sample (PERF_SAMPLE_*).
  [[nodiscard]] Event sample(std::uint64_t sample_type) const;
  // Adds PERF_SAMPLE_CALLCHAIN, of user code only if the kernel is excluded (R18).
  [[nodiscard]] Event callchain() const;
  [[nodiscard]] Event kernel(Kernel which) const;
  // Selects records of a tracepoint, with an expression as in tracefs: "prev_pid == 0".
  [[nodiscard]] Event filter(std::string expression) const;
  // Opens `fallback` instead if this event cannot be opened. The sampler's notes report it.
  [[nodiscard]] Event or_else(Event fallback) const;
  // Changes anything in perf_event_attr, after all other settings. An empty function changes
  // nothing.
  [[nodiscard]] Event adjust(std::function<void(perf_event_attr&)> change) const;

  EventKind kind() const noexcept { return kind_; }
  // For people: "the tracepoint sched:sched_switch".
  const std::string& name() const noexcept { return name_; }
  Kernel kernel() const noexcept { return kernel_.value_or(own_kernel_); }
  const std::string& filter() const noexcept { return filter_; }
  const Event* fallback() const noexcept { return fallback_.get(); }
  // Returns true if the event occurs in any task, so that without a target all tasks are watched.
  bool is_system_wide() const noexcept;

  // Returns the attributes for this machine: names become ids. A pointer in them points to a string
  // that is owned by this event or any copy of it, which must outlive the system call. With
  // Kernel::IfAllowed the kernel is included.
  std::expected<perf_event_attr, Finding> attr(System& system = real_system()) const;
  // The same, with config3 and config4 (in OpenArgs), which the terms of a PMU may need.
  std::expected<OpenArgs, Finding> open_args(System& system = real_system()) const;

  // Returns true if a Sampler skips records of this type, because the kernel adds them unasked
  // (changes()).
  bool leaves_out(std::uint32_t type) const noexcept {
    return type < 64 && (left_out_ >> type & 1) != 0;
  }

  // For the functions below. A number that is not an EventKind has no names.
  Event(EventKind kind, std::string name, const perf_event_attr& own, Kernel kernel);
  [[nodiscard]] Event of(std::string object, std::optional<std::string> part = {}) const;
  [[nodiscard]] Event leaving_out(std::uint64_t types) const;  // one bit per type

 private:
  struct Names {
    std::string object;               // a tracepoint, a function, a path, a PMU's event
    std::optional<std::string> part;  // the symbol in a path
  };
  PERFRING_HIDDEN const Names& names() const noexcept;
  PERFRING_HIDDEN std::optional<Finding> resolve(OpenArgs& args, System& system) const;
  PERFRING_HIDDEN std::optional<Finding> resolve_probe(OpenArgs& args, System& system) const;

  EventKind kind_;
  std::string name_;
  perf_event_attr own_;
  Kernel own_kernel_;
  std::shared_ptr<const Names> names_ = std::make_shared<const Names>();
  std::optional<std::uint64_t> period_;
  std::optional<std::uint64_t> frequency_;
  std::uint64_t sample_ = 0;
  std::uint64_t left_out_ = 0;
  std::optional<Kernel> kernel_;
  std::string filter_;
  std::shared_ptr<const Event> fallback_;
  std::vector<std::function<void(perf_event_attr&)> > changes_;
};

// PERF_COUNT_SW_*: PAGE_FAULTS, CPU_CLOCK, BPF_OUTPUT, and CONTEXT_SWITCHES, which needs the kernel
// (changes() has the switches that any user may see).
PERFRING_EXPORT Event software(perf_sw_ids which);
// A tracepoint, named as in tracefs: "sched:sched_switch".
PERFRING_EXPORT Event tracepoint(std::string name);
// A kernel function or an instruction in it; a kernel function's return.
PERFRING_EXPORT Event kprobe(std::string function, std::uint64_t offset = 0);
PERFRING_EXPORT Event kretprobe(std::string function);
// A function of a program or library, by its symbol or its offset in the file; the function's
// return.
PERFRING_EXPORT Event uprobe(std::string path, std::string symbol);
PERFRING_EXPORT Event uprobe(std::string path, std::uint64_t file_offset);
PERFRING_EXPORT Event uretprobe(std::string path, std::string symbol);
PERFRING_EXPORT Event uretprobe(std::string path, std::uint64_t file_offset);
// Events that the processor counts.
PERFRING_EXPORT Event hardware(perf_hw_id which);
PERFRING_EXPORT Event cache(perf_hw_cache_id cache, perf_hw_cache_op_id op,
                            perf_hw_cache_op_result_id result);
PERFRING_EXPORT Event raw(std::uint64_t config);
// "msr/tsc/", "cpu/event=0x3c,umask=0/": a PMU in sysfs, with its events and the terms of its
// formats.
PERFRING_EXPORT Event pmu(std::string description);
// Accesses to `length` bytes (1, 2, 4 or 8) at an address of this process, or of the kernel.
enum class Access : std::uint8_t { Read = 1, Write = 2, ReadWrite = 3, Execute = 4 };
PERFRING_EXPORT Event breakpoint(std::uint64_t address, Access access, std::uint64_t length = 4);

// Records of the activity of tasks and the kernel, in addition to samples. A Sampler omits the
// records that the kernel adds unasked: FORK and EXIT with COMM and MMAP2 (T9), COMM with CGROUP
// and NAMESPACES (R10).
struct Changes {
  bool switches = false;    // SWITCH: of the user's own tasks, without any privilege
  bool names = false;       // COMM
  bool execs = false;       // COMM, with is_exec()
  bool forks = false;       // FORK, EXIT
  bool maps = false;        // MMAP2, of code
  bool data_maps = false;   // MMAP2, of data as well
  bool cgroups = false;     // CGROUP
  bool namespaces = false;  // NAMESPACES: needs CAP_PERFMON
  bool symbols = false;     // KSYMBOL
  bool programs = false;    // BPF_EVENT
  bool text = false;        // TEXT_POKE
};
PERFRING_EXPORT Event changes(const Changes& which);

// Returns an event by its command-line name: "page-faults", "cycles", "L1-dcache-load-misses",
// "r1a8", "sched:sched_switch", "msr/tsc/", "kprobe:FUNCTION", "uprobe:PATH:SYMBOL",
// "mem:0xADDRESS:rw:4", "changes:switches,execs".
PERFRING_EXPORT std::expected<Event, Finding> by_name(std::string_view name);
// Returns all names that are not patterns, one per event: "page-faults", but not "faults" as well.
PERFRING_EXPORT std::vector<std::string> known_names();

namespace internal {

// Returns "sched:sched_switch" if `name` is a tracepoint's Event::name(), and "" for any other
// event.
std::string_view tracepoint_in(std::string_view name) noexcept;
// Excludes the kernel, which attr() includes for Kernel::IfAllowed.
void exclude_kernel(perf_event_attr& attr) noexcept;
// Returns the id of a tracepoint, or which of four things is wrong.
std::expected<std::uint64_t, Finding> tracepoint_id(const std::string& name, System& system);
// Puts the type and the terms of a PMU's event into the attributes.
std::optional<Finding> apply_pmu(std::string_view description, OpenArgs& args, System& system);
// Returns the name of an event that the processor counts (PERF_TYPE_HARDWARE, _HW_CACHE), such as
// "cycles", or its number if it has no name.
std::string hardware_name(std::uint64_t config);
std::string cache_name(std::uint64_t config);
// Returns the names in `names` that are most similar to `name`, best first, at most three.
std::string nearest(std::string_view name, const std::vector<std::string>& names);
// Returns the offset of a symbol's code in the file, as a uprobe needs it: not the virtual address,
// but the place of that address in the file, according to its PT_LOAD segment. Reads ELF files in
// this machine's byte order, 32 and 64 bits. The error names the path or the symbol. Reads no byte
// outside the file, whatever its headers say, even if someone truncates it meanwhile.
std::expected<std::uint64_t, Finding> file_offset_of(const char* path, std::string_view symbol);
// Returns true if an ELF file that begins with these bytes may have code at this offset: in an
// executable segment. Also returns true if it is not an ELF file, or if the bytes end before its
// table of segments.
bool may_be_code(std::string_view file, std::uint64_t offset);

}  // namespace internal
}  // namespace perfring::event

#endif
#endif  // PERFRING_EVENT_EVENT_H_
