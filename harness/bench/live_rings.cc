#include "harness/bench/contenders.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "harness/bench/bpf_args.h"
#include "harness/bench/fill.h"
#include "harness/bench/workload.h"
#include "perfring/perfring.h"

namespace perfring::bench {
namespace {

// Returns "WHAT: " and the system's text for `error`, an errno, negative or not.
std::string failure(const std::string& what, int error) {
  return what + ": " + std::generic_category().message(std::abs(error));
}

}  // namespace

// One loaded copy of fill.bpf.c with its own events map.
class FillProgram {
 public:
  static std::expected<FillProgram, std::string> load();

  // The BPF_MAP_TYPE_PERF_EVENT_ARRAY to which run() writes.
  int events_fd() const;

  // Writes the workload's events to the current CPU's entry.
  std::expected<void, std::string> run(const Workload& workload) const;

 private:
  struct Close {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };
  explicit FillProgram(bpf_object* object) : object_{object} {}

  std::unique_ptr<bpf_object, Close> object_;
};

std::expected<FillProgram, std::string> FillProgram::load() {
  libbpf_set_print(nullptr);  // errors are reported by this program, in one line
  const auto bytes = live::fill();
  bpf_object* const object = bpf_object__open_mem(bytes.data(), bytes.size(), nullptr);
  if (object == nullptr) return std::unexpected(failure("opening the BPF program", errno));
  FillProgram program{object};
  bpf_map* const events = bpf_object__find_map_by_name(object, "events");
  if (const int cpus = libbpf_num_possible_cpus(); cpus < 0) {
    return std::unexpected(failure("counting the CPUs", cpus));
  } else {
    bpf_map__set_max_entries(events, static_cast<__u32>(cpus));
  }
  if (const int error = bpf_object__load(object); error != 0) {
    return std::unexpected(failure("loading the BPF program", error));
  }
  return program;
}

int FillProgram::events_fd() const {
  return bpf_object__find_map_fd_by_name(object_.get(), "events");
}

std::expected<void, std::string> FillProgram::run(const Workload& workload) const {
  std::array<std::uint64_t, FILL_ARGS> arguments{};
  arguments[FILL_EVENTS] = workload.count.events;
  arguments[FILL_CHOICES] = workload.mix.choices;
  for (unsigned i = 0; i < PAYLOAD_CHOICES_MAX; ++i) {
    arguments[FILL_BYTES + i] = workload.mix.bytes[i];
  }
  bpf_test_run_opts options{};
  options.sz = sizeof(options);
  options.ctx_in = arguments.data();
  options.ctx_size_in = sizeof(arguments);
  const bpf_program* const program = bpf_object__find_program_by_name(object_.get(), "fill");
  if (const int error = bpf_prog_test_run_opts(bpf_program__fd(program), &options); error != 0) {
    return std::unexpected(failure("running the BPF program", error));
  }
  if (options.retval != 0) {
    return std::unexpected("the kernel refused " + std::to_string(options.retval) + " events");
  }
  return {};
}

namespace {

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Returns the control page of the only ring of `ring_bytes` that this process has mapped so far.
// Reads the list of mappings, because PerfBuffer exposes its page to nobody. A second mapping of
// the page would not work: the processor cannot forward a store through one address to a load
// through another, so each drain would wait for its data_tail.
std::expected<perf_event_mmap_page*, std::string> control_page(std::size_t ring_bytes) {
  std::ifstream maps{"/proc/self/maps"};
  perf_event_mmap_page* page = nullptr;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (line.find("[perf_event]") == line.npos) continue;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    if (end - begin != page_bytes() + ring_bytes) continue;
    if (page != nullptr) return std::unexpected("/proc/self/maps shows more rings than one");
    page = reinterpret_cast<perf_event_mmap_page*>(begin);
  }
  if (page == nullptr) return std::unexpected("/proc/self/maps does not show the ring");
  return page;
}

// Called by the real libbpf for each event.
template <Callback kCallback>
void on_sample(void* tally, int, void* raw, __u32 size) {
  add<kCallback>(*static_cast<Tally*>(tally), static_cast<const std::byte*>(raw), size);
}
void on_lost(void* tally, int, __u64) {
  ++static_cast<Tally*>(tally)->odd;
}

}  // namespace

struct LiveRings::Impl {
  struct Free {
    void operator()(perf_buffer* buffer) const { perf_buffer__free(buffer); }
  };

  Callback callback;
  std::size_t used_bytes;
  FillProgram ours_program;
  FillProgram libbpf_program;
  std::optional<PerfEventArrayBuffer> ours = {};
  perf_event_mmap_page* ours_page = nullptr;
  std::unique_ptr<perf_buffer, Free> libbpf = {};
  std::size_t libbpf_index = 0;  // of the buffer that was filled: one per CPU
  perf_event_mmap_page* libbpf_page = nullptr;
  Tally libbpf_tally = {};

  std::expected<void, std::string> fill_ours(const Workload& workload);
  std::expected<void, std::string> fill_libbpf(const Workload& workload);

  Tally drain_libbpf(unsigned passes) {
    libbpf_tally = {};
    for (; passes != 0; --passes) {
      __atomic_store_n(&libbpf_page->data_tail, 0, __ATOMIC_RELEASE);
      if (perf_buffer__consume_buffer(libbpf.get(), libbpf_index) != 0) ++libbpf_tally.odd;
    }
    return libbpf_tally;
  }
};

std::expected<void, std::string> LiveRings::Impl::fill_ours(const Workload& workload) {
  auto array = PerfEventArray::from_fd(ours_program.events_fd());
  if (!array) return std::unexpected(array.error().message());
  const PerfBufferOptions options{
      .page_count = workload.ring_bytes / page_bytes(),
      .wakeup_watermark = static_cast<std::uint32_t>(workload.ring_bytes),
  };
  auto buffer = array->open(static_cast<std::uint32_t>(sched_getcpu()), options);
  if (!buffer) return std::unexpected(buffer.error().message());
  ours = *std::move(buffer);
  const auto page = control_page(workload.ring_bytes);
  if (!page) return std::unexpected(page.error());
  ours_page = *page;
  return ours_program.run(workload);
}

std::expected<void, std::string> LiveRings::Impl::fill_libbpf(const Workload& workload) {
  const auto sample =
      callback == Callback::Sum ? on_sample<Callback::Sum> : on_sample<Callback::Count>;
  libbpf.reset(perf_buffer__new(libbpf_program.events_fd(), workload.ring_bytes / page_bytes(),
                                sample, on_lost, &libbpf_tally, nullptr));
  if (libbpf == nullptr) return std::unexpected(failure("perf_buffer__new", errno));
  if (const auto run = libbpf_program.run(workload); !run) return run;
  for (std::size_t i = 0; i < perf_buffer__buffer_cnt(libbpf.get()); ++i) {
    void* memory = nullptr;
    std::size_t ring_bytes = 0;
    if (perf_buffer__buffer(libbpf.get(), static_cast<int>(i), &memory, &ring_bytes) != 0) continue;
    auto* const page = static_cast<perf_event_mmap_page*>(memory);
    if (__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) == 0) continue;
    libbpf_index = i;
    libbpf_page = page;
  }
  if (libbpf_page == nullptr) return std::unexpected("libbpf's ring stayed empty");
  return {};
}

std::expected<LiveRings, std::string> LiveRings::filled(const Workload& workload,
                                                        Callback callback) {
  auto ours = FillProgram::load();
  if (!ours) return std::unexpected(ours.error());
  auto libbpf = FillProgram::load();
  if (!libbpf) return std::unexpected(libbpf.error());
  auto impl =
      std::make_unique<Impl>(callback, workload.used_bytes, *std::move(ours), *std::move(libbpf));
  if (const auto filled = impl->fill_ours(workload); !filled) {
    return std::unexpected(filled.error());
  }
  if (const auto filled = impl->fill_libbpf(workload); !filled) {
    return std::unexpected(filled.error());
  }
  return LiveRings{std::move(impl)};
}

LiveRings::LiveRings(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
LiveRings::LiveRings(LiveRings&&) noexcept = default;
LiveRings::~LiveRings() = default;

std::vector<Contender> LiveRings::contenders() {
  Impl* const impl = impl_.get();
  const auto ours = [impl](auto drain) {
    return [impl, drain](unsigned passes) {
      return drain(*impl->ours, *impl->ours_page, impl->callback, passes);
    };
  };
  return {{"PerfBuffer", ours(drain_buffer)},
          {"PerfBuffer -O2", ours(drain_buffer_at_o2)},
          {"LB-spec live",
           [impl](unsigned passes) {
             const auto* const begin =
                 reinterpret_cast<const std::byte*>(impl->ours_page) + page_bytes();
             return guess_records(begin, begin + impl->used_bytes, impl->callback, passes);
           }},
          {"libbpf", [impl](unsigned passes) { return impl->drain_libbpf(passes); }}};
}

}  // namespace perfring::bench
