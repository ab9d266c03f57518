// The machine's own kernel behind a program's events.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/supervisor/backend.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/live/emitter.h"
#include "harness/live/live_kernel.h"
#include "harness/program/checked.h"
#include "harness/script/script.h"
#include "perfring/os/cpus.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"

namespace perfring::conformance {
namespace {

constexpr std::uint64_t kStartMax = 1U << 20;

std::optional<std::string> why_not_live(const Part& part) {
  if (std::holds_alternative<Patch>(part)) return "this machine's kernel does not write such bytes";
  if (std::holds_alternative<Hotplug>(part)) return "this machine's CPUs are not taken offline";
  const auto* const steps = std::get_if<std::vector<script::Step>>(&part);
  const auto is_nested = [](const script::Step& step) { return step.depth != 0; };
  if (steps == nullptr || std::ranges::none_of(*steps, is_nested)) return std::nullopt;
  return "a real kernel cannot be made to nest outputs";
}

void check(const os::Result<void>& done, const char* what) {
  if (!done) throw std::system_error{done.error(), what};
}

class Emitted final : public LiveRing {
 public:
  Emitted(live::Emitter& emitter, const ProgramEvent& event) : emitter_{emitter}, event_{event} {}

  std::uint64_t sample_type() const override { return event_.attr.sample_type; }

  int output(std::span<const std::byte> payload) override {
    std::ranges::copy(payload, emitter_.payload().begin());
    const auto cpu = static_cast<std::uint32_t>(event_.cpu);
    return emitter_.emit(cpu, payload.size(), cpu);
  }

  void control(script::Action action) override {
    using script::Action;
    const int fd = event_.file.get();
    if (action == Action::Disable) return check(os::perf_event_disable(fd), "disable");
    if (action == Action::Enable) return check(os::perf_event_enable(fd), "enable");
    check(os::perf_event_pause_output(fd, action == Action::Pause), "pause");
  }

  // Writes and releases `start` bytes, before the program gets its ring.
  void move_to(std::uint64_t start) {
    const int fd = event_.file.get();
    check(os::perf_event_enable(fd), "enable");
    const std::uint64_t least = 8 + 8 * static_cast<std::uint64_t>(std::popcount(sample_type()));
    const std::uint64_t most = std::min<std::uint64_t>((event_.memory().size() - 4096) / 2, 32768);
    for (std::uint64_t left = start, size = 0; left != 0; left -= size) {
      size = std::min(left, most);
      if (left != size && left - size < least) size -= least;
      const std::vector<std::byte> nothing(static_cast<std::size_t>(size - least + 4));
      if (output(nothing) != 0) throw std::runtime_error{"a record before the case was refused"};
      event_.page().data_tail = __atomic_load_n(&event_.page().data_head, __ATOMIC_ACQUIRE);
    }
    pollfd written{fd, POLLIN, 0};
    ::poll(&written, 1, 0);  // clears the flag (K26)
    if (event_.attr.disabled != 0) check(os::perf_event_disable(fd), "disable");
  }

 private:
  live::Emitter& emitter_;
  const ProgramEvent& event_;
};

}  // namespace

std::optional<std::string> why_not_live(const Case& of) {
  const script::Settings& settings = of.settings;
  if (settings.word == kernel::Word::k32) return "this machine's kernel has 64 bits";
  if (settings.start > kStartMax) return "this machine's kernel starts at 0, several GiB earlier";
  if (settings.start != 0 && of.has_other_wakeups()) return "this machine's kernel starts at 0";
  if (settings.events > 1) return "no second event is opened on this machine's kernel";
  if (!of.absent.empty()) return "this machine's CPUs are not taken offline";
  for (const Part& part : of.parts) {
    if (auto why = why_not_live(part)) return why;
  }
  static const std::optional<std::string> lacks = live::why_no_live_kernel();
  if (lacks) return lacks;
  const auto online = os::online_cpus();
  for (std::uint32_t cpu = 0; cpu < of.cpus; ++cpu) {
    if (std::ranges::find(*online, cpu) == online->end()) {
      return fmt::format("this machine has no CPU {}", cpu);
    }
  }
  return std::nullopt;
}

LiveBackend::LiveBackend(live::Emitter& emitter)
    : emitter_{emitter},
      map_{checked(::fcntl(emitter.map_fd(), F_DUPFD_CLOEXEC, 0), "fcntl(F_DUPFD_CLOEXEC)")} {}

int LiveBackend::open(ProgramEvent& event) const {
  perf_event_attr attr = event.attr;
  attr.size = std::min<std::uint32_t>(attr.size, sizeof(attr));
  auto opened = os::perf_event_open(attr, static_cast<std::uint32_t>(event.cpu));
  if (!opened) return opened.error().value();
  event.file = *std::move(opened);
  ::ioctl(event.file.get(), PERF_EVENT_IOC_ID, &event.id);
  return 0;
}

// The kernel's events share one inode, but each has an id.
bool LiveBackend::is_of(const ProgramEvent& event, const os::Fd& file) const {
  std::uint64_t id = 0;
  return ::ioctl(file.get(), PERF_EVENT_IOC_ID, &id) == 0 && id == event.id;
}

int LiveBackend::map_ring(ProgramEvent& event, std::size_t length) const {
  auto mapping = os::Mapping::map(event.file.get(), length);
  if (!mapping) return mapping.error().value();
  event.mapping = *std::move(mapping);
  return 0;
}

// Moves data_head and data_tail to the event's start.
void LiveBackend::make_producer(ProgramEvent& event, const script::Settings&, bool plays) const {
  if (!plays) return;
  auto emitted = std::make_unique<Emitted>(emitter_, event);
  if (event.start != 0) {  // the program enters it again later
    check(os::bpf_map_update(emitter_.map_fd(), static_cast<std::uint32_t>(event.cpu),
                             static_cast<std::uint32_t>(event.file.get())),
          "BPF_MAP_UPDATE_ELEM");
    emitted->move_to(event.start);
  }
  event.behind = std::move(emitted);
}

// Updates the map itself, because the producer writes right after the update.
int LiveBackend::enter(std::uint32_t key, const ProgramEvent& event) const {
  const auto entered =
      os::bpf_map_update(map_.get(), key, static_cast<std::uint32_t>(event.file.get()));
  return entered ? 0 : entered.error().value();
}

}  // namespace perfring::conformance
