#include "harness/bench/live_rings.h"

#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include "harness/bench/drain_ring.h"
#include "harness/bench/fill_program.h"
#include "perfring/perfring.h"

namespace perfring::bench {
namespace {

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// The control page of a ring that somebody else has mapped, mapped once more.
class ControlPage {
 public:
  static std::expected<ControlPage, std::string> of(int event, std::size_t ring_bytes) {
    // The kernel wants the same length as the first time.
    const std::size_t length = page_bytes() + ring_bytes;
    void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    if (memory == MAP_FAILED) return std::unexpected(failure("mapping a ring again", errno));
    return ControlPage{memory, length};
  }
  ControlPage(ControlPage&& other) noexcept
      : memory_{std::exchange(other.memory_, nullptr)}, length_{other.length_} {}
  ControlPage& operator=(ControlPage&&) = delete;
  ~ControlPage() {
    if (memory_ != nullptr) munmap(memory_, length_);
  }
  perf_event_mmap_page& operator*() const { return *static_cast<perf_event_mmap_page*>(memory_); }

 private:
  ControlPage(void* memory, std::size_t length) : memory_{memory}, length_{length} {}
  void* memory_;
  std::size_t length_;
};

// What real libbpf calls for each event.
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
  FillProgram ours_program;
  FillProgram libbpf_program;
  std::optional<PerfEventArrayBuffer> ours = {};
  std::optional<ControlPage> ours_page = {};
  std::unique_ptr<perf_buffer, Free> libbpf = {};
  std::size_t libbpf_index = 0;  // of the buffer that was filled: it has one for each CPU
  perf_event_mmap_page* libbpf_page = nullptr;
  Tally libbpf_tally = {};

  std::expected<void, std::string> fill_ours(const Workload& workload);
  std::expected<void, std::string> fill_libbpf(const Workload& workload);

  template <Callback kCallback>
  Tally drain_ours(unsigned passes) {
    Tally tally;
    for (; passes != 0; --passes) {
      __atomic_store_n(&(**ours_page).data_tail, 0, __ATOMIC_RELEASE);
      tally += drain_once<kCallback>(*ours);
    }
    return Tally{tally};
  }

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
  auto page = ControlPage::of(ours->fd(), workload.ring_bytes);
  if (!page) return std::unexpected(page.error());
  ours_page.emplace(*std::move(page));
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
  auto impl = std::make_unique<Impl>(callback, *std::move(ours), *std::move(libbpf));
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
  const bool sums = impl->callback == Callback::Sum;
  return {{"PerfBuffer",
           [impl, sums](unsigned passes) {
             return sums ? impl->drain_ours<Callback::Sum>(passes)
                         : impl->drain_ours<Callback::Count>(passes);
           }},
          {"libbpf", [impl](unsigned passes) { return impl->drain_libbpf(passes); }}};
}

}  // namespace perfring::bench
