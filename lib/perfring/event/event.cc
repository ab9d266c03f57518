#include "perfring/event/event.h"

#include <linux/hw_breakpoint.h>

#include <ctime>
#include <utility>

namespace perfring::event {
namespace {

constexpr std::uint64_t kAlways =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
constexpr std::uint64_t kDefaultFrequency = 99;

perf_event_attr attr_of(std::uint32_t type, std::uint64_t config, std::uint64_t sample_type) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.sample_type = kAlways | sample_type;
  attr.read_format =
      PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.disabled = 1;
  return attr;
}

perf_event_attr each(perf_event_attr attr) {
  attr.sample_period = 1;
  return attr;
}

perf_event_attr timed(perf_event_attr attr) {
  attr.freq = 1;
  attr.sample_freq = kDefaultFrequency;
  return attr;
}

constexpr std::string_view kTracepoint = "the tracepoint ";

std::string hex(std::uint64_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), kDigits[value % 16]);
  while ((value /= 16) != 0);
  return text.insert(0, "0x");
}

bool is_return(EventKind kind) {
  return kind == EventKind::Kretprobe || kind == EventKind::Uretprobe;
}

}  // namespace

namespace internal {

std::string_view tracepoint_in(std::string_view name) noexcept {
  return name.starts_with(kTracepoint) ? name.substr(kTracepoint.size()) : std::string_view{};
}

void exclude_kernel(perf_event_attr& attr) noexcept {
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.exclude_callchain_kernel = 1;  // R18
}

}  // namespace internal

Event::Event(EventKind kind, std::string name, const perf_event_attr& own, Kernel kernel)
    : kind_{kind}, name_{std::move(name)}, own_{own}, own_kernel_{kernel} {}

Event Event::period(std::uint64_t every) const {
  Event copy = *this;
  copy.period_ = every;
  copy.frequency_.reset();
  return copy;
}

Event Event::frequency(std::uint64_t hertz) const {
  Event copy = *this;
  copy.frequency_ = hertz;
  copy.period_.reset();
  return copy;
}

Event Event::sample(std::uint64_t sample_type) const {
  Event copy = *this;
  copy.sample_ |= sample_type;
  return copy;
}

Event Event::callchain() const {
  return sample(PERF_SAMPLE_CALLCHAIN);
}

Event Event::kernel(Kernel which) const {
  Event copy = *this;
  copy.kernel_ = which;
  return copy;
}

Event Event::filter(std::string expression) const {
  Event copy = *this;
  copy.filter_ = std::move(expression);
  return copy;
}

Event Event::or_else(Event fallback) const {
  Event copy = *this;
  // After the fallbacks that the event already has.
  if (copy.fallback_ != nullptr) fallback = copy.fallback_->or_else(std::move(fallback));
  copy.fallback_ = std::make_shared<const Event>(std::move(fallback));
  return copy;
}

Event Event::adjust(std::function<void(perf_event_attr&)> change) const {
  Event copy = *this;
  if (change) copy.changes_.push_back(std::move(change));
  return copy;
}

Event Event::of(std::string object, std::optional<std::string> part) const {
  Event named = *this;
  named.names_ = std::make_shared<const Names>(Names{std::move(object), std::move(part)});
  return named;
}

Event Event::leaving_out(std::uint64_t types) const {
  Event copy = *this;
  copy.left_out_ = types;
  return copy;
}

bool Event::is_system_wide() const noexcept {
  return kind_ == EventKind::Tracepoint || kind_ == EventKind::Kprobe ||
         kind_ == EventKind::Kretprobe || kind_ == EventKind::Pmu || kind_ == EventKind::Uprobe ||
         kind_ == EventKind::Uretprobe ||
         (kind_ == EventKind::Software && own_.config == PERF_COUNT_SW_BPF_OUTPUT);
}

std::expected<perf_event_attr, Finding> Event::attr(System& system) const {
  auto args = open_args(system);
  if (!args) return std::unexpected(std::move(args).error());
  return args->attr;
}

std::expected<OpenArgs, Finding> Event::open_args(System& system) const {
  OpenArgs args;
  perf_event_attr& attr = args.attr;
  attr = own_;
  if (auto wrong = resolve(args, system)) return std::unexpected(*std::move(wrong));
  if (period_) {
    attr.freq = 0;
    attr.sample_period = *period_;
  }
  if (frequency_) {
    attr.freq = 1;
    attr.sample_freq = *frequency_;
  }
  attr.sample_type |= sample_;
  if (kernel() == Kernel::Excluded) internal::exclude_kernel(attr);
  for (const auto& change : changes_) change(attr);
  return args;
}

const Event::Names& Event::names() const noexcept {
  static const Names kNone;
  return names_ != nullptr ? *names_ : kNone;
}

std::optional<Finding> Event::resolve(OpenArgs& args, System& system) const {
  switch (kind_) {
    case EventKind::Tracepoint: {
      auto id = internal::tracepoint_id(names().object, system);
      if (!id) return std::move(id).error();
      args.attr.config = *id;
      return std::nullopt;
    }
    case EventKind::Pmu:
      return internal::apply_pmu(names().object, args, system);
    case EventKind::Kprobe:
    case EventKind::Kretprobe:
    case EventKind::Uprobe:
    case EventKind::Uretprobe:
      return resolve_probe(args, system);
    default:
      return std::nullopt;
  }
}

std::optional<Finding> Event::resolve_probe(OpenArgs& args, System& system) const {
  perf_event_attr& attr = args.attr;
  const bool is_kernel = kind_ == EventKind::Kprobe || kind_ == EventKind::Kretprobe;
  const std::string pmu = is_kernel ? "kprobe" : "uprobe";
  const internal::Facts facts{system};
  const auto type = facts.pmu_type(pmu);
  if (!type) {
    return Finding{.field = "type",
                   .says = "this kernel has no " + pmu + " PMU",
                   .advice = is_kernel ? "use a tracepoint, or a kernel with CONFIG_KPROBE_EVENTS"
                                       : "use a kernel with CONFIG_UPROBE_EVENTS"};
  }
  attr.type = *type;
  if (is_return(kind_)) {
    if (auto wrong = internal::apply_pmu(pmu + "/retprobe=1/", args, system)) return wrong;
  }
  attr.config1 = reinterpret_cast<std::uintptr_t>(names().object.c_str());
  if (is_kernel || !names().part) return std::nullopt;
  const auto offset = internal::file_offset_of(names().object.c_str(), *names().part);
  if (!offset) return offset.error();
  attr.config2 = *offset;
  return std::nullopt;
}

Event software(perf_sw_ids which) {
  const auto of = [which](std::uint64_t fields) {
    return attr_of(PERF_TYPE_SOFTWARE, which, fields);
  };
  const auto make = [](const char* name, const perf_event_attr& own, Kernel kernel) {
    return Event{EventKind::Software, std::string{"the software event "} + name, own, kernel};
  };
  constexpr std::uint64_t kFault = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
  constexpr std::uint64_t kClock = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
  switch (which) {
    case PERF_COUNT_SW_CPU_CLOCK:
      return make("cpu-clock", timed(of(kClock)), Kernel::IfAllowed);
    case PERF_COUNT_SW_TASK_CLOCK:
      return make("task-clock", timed(of(kClock)), Kernel::IfAllowed);
    case PERF_COUNT_SW_PAGE_FAULTS:
      return make("page-faults", each(of(kFault)), Kernel::IfAllowed);
    case PERF_COUNT_SW_PAGE_FAULTS_MIN:
      return make("minor-faults", each(of(kFault)), Kernel::IfAllowed);
    case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
      return make("major-faults", each(of(kFault)), Kernel::IfAllowed);
    case PERF_COUNT_SW_CONTEXT_SWITCHES:
      return make("context-switches", each(of(PERF_SAMPLE_IP)), Kernel::Included);
    case PERF_COUNT_SW_CPU_MIGRATIONS:
      return make("cpu-migrations", each(of(PERF_SAMPLE_IP)), Kernel::Included);
    case PERF_COUNT_SW_CGROUP_SWITCHES:
      return make("cgroup-switches", each(of(PERF_SAMPLE_IP)), Kernel::Included);
    case PERF_COUNT_SW_ALIGNMENT_FAULTS:
      return make("alignment-faults", each(of(kFault)), Kernel::Included);
    case PERF_COUNT_SW_EMULATION_FAULTS:
      return make("emulation-faults", each(of(kFault)), Kernel::Included);
    case PERF_COUNT_SW_BPF_OUTPUT:
      return make("bpf-output", each(of(PERF_SAMPLE_RAW)), Kernel::Included);
    case PERF_COUNT_SW_DUMMY:
      return make("dummy", of(0), Kernel::IfAllowed);
    default:
      return make(std::to_string(which).c_str(), each(of(PERF_SAMPLE_IP)), Kernel::IfAllowed);
  }
}

Event tracepoint(std::string name) {
  return Event{EventKind::Tracepoint, std::string{kTracepoint} + name,
               each(attr_of(PERF_TYPE_TRACEPOINT, 0, PERF_SAMPLE_RAW)), Kernel::Included}
      .of(std::move(name));
}

namespace {

Event probe(EventKind kind, const char* what, std::string object, std::optional<std::string> part,
            std::uint64_t offset) {
  perf_event_attr own = each(attr_of(0, 0, PERF_SAMPLE_RAW));
  own.config2 = offset;
  std::string name = std::string{what} + object;
  if (part) name.append(":").append(*part);
  if (offset != 0) name.append("+").append(hex(offset));
  return Event{kind, std::move(name), own, Kernel::Included}.of(std::move(object), std::move(part));
}

}  // namespace

Event kprobe(std::string function, std::uint64_t offset) {
  return probe(EventKind::Kprobe, "a kprobe on ", std::move(function), {}, offset);
}
Event kretprobe(std::string function) {
  return probe(EventKind::Kretprobe, "a kretprobe on ", std::move(function), {}, 0);
}
Event uprobe(std::string path, std::string symbol) {
  return probe(EventKind::Uprobe, "a uprobe on ", std::move(path), std::move(symbol), 0);
}
Event uprobe(std::string path, std::uint64_t file_offset) {
  return probe(EventKind::Uprobe, "a uprobe on ", std::move(path), {}, file_offset);
}
Event uretprobe(std::string path, std::string symbol) {
  return probe(EventKind::Uretprobe, "a uretprobe on ", std::move(path), std::move(symbol), 0);
}
Event uretprobe(std::string path, std::uint64_t file_offset) {
  return probe(EventKind::Uretprobe, "a uretprobe on ", std::move(path), {}, file_offset);
}

Event hardware(perf_hw_id which) {
  return Event{EventKind::Hardware, "the hardware event " + internal::hardware_name(which),
               timed(attr_of(PERF_TYPE_HARDWARE, which, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD)),
               Kernel::IfAllowed};
}

Event cache(perf_hw_cache_id cache, perf_hw_cache_op_id op, perf_hw_cache_op_result_id result) {
  const std::uint64_t config =
      std::uint64_t{cache} | std::uint64_t{op} << 8 | std::uint64_t{result} << 16;
  return Event{EventKind::Cache, "the cache event " + internal::cache_name(config),
               timed(attr_of(PERF_TYPE_HW_CACHE, config, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD)),
               Kernel::IfAllowed};
}

Event raw(std::uint64_t config) {
  return Event{EventKind::Raw, "the raw event " + hex(config),
               timed(attr_of(PERF_TYPE_RAW, config, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD)),
               Kernel::IfAllowed};
}

Event pmu(std::string description) {
  return Event{EventKind::Pmu, "the event " + description, attr_of(0, 0, 0), Kernel::Included}.of(
      std::move(description));
}

Event breakpoint(std::uint64_t address, Access access, std::uint64_t length) {
  perf_event_attr own = each(attr_of(PERF_TYPE_BREAKPOINT, 0, PERF_SAMPLE_IP | PERF_SAMPLE_ADDR));
  own.bp_addr = address;
  own.bp_type = static_cast<std::uint32_t>(access);
  static_assert(HW_BREAKPOINT_R == 1 && HW_BREAKPOINT_W == 2 && HW_BREAKPOINT_X == 4);
  own.bp_len = access == Access::Execute ? sizeof(long) : length;
  return Event{EventKind::Breakpoint, "a breakpoint at " + hex(address), own, Kernel::IfAllowed};
}

Event changes(const Changes& which) {
  perf_event_attr own = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0);
  own.context_switch = which.switches;
  own.comm = which.names || which.execs || which.cgroups || which.namespaces;  // R10
  own.comm_exec = which.execs;
  own.task = which.forks;
  own.mmap = which.maps || which.data_maps;
  own.mmap2 = own.mmap;
  own.mmap_data = which.data_maps;
  own.cgroup = which.cgroups;
  own.namespaces = which.namespaces;
  own.ksymbol = which.symbols;
  own.bpf_event = which.programs;
  own.text_poke = which.text;
  std::uint64_t unasked = 0;
  if (!which.names && !which.execs) unasked |= 1U << PERF_RECORD_COMM;
  if (!which.forks) unasked |= 1U << PERF_RECORD_FORK | 1U << PERF_RECORD_EXIT;
  return Event{EventKind::Changes, "the changes", own, Kernel::IfAllowed}.leaving_out(unasked);
}

}  // namespace perfring::event
