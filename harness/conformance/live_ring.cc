// The machine's own kernel as the producer of a case.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <variant>

#include "harness/conformance/emulated_calls.h"
#include "harness/live/live_kernel.h"
#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"

namespace perfring::conformance {
namespace {

constexpr std::uint64_t kStartMax = 1U << 20;

std::optional<std::string> why_not_live(const Part& part) {
  if (std::holds_alternative<Patch>(part)) return "this machine's kernel writes no such bytes";
  if (std::holds_alternative<Hotplug>(part)) return "no CPU of this machine is taken offline";
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
  Emitted(live::Emitter& emitter, const Opened& event) : emitter_{emitter}, event_{event} {}

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

  // Writes and releases so many bytes, before the program has its ring.
  void move_to(std::uint64_t start) {
    const int fd = event_.file.get();
    check(os::perf_event_enable(fd), "enable");
    const std::uint64_t least = 8 + 8 * static_cast<std::uint64_t>(std::popcount(sample_type()));
    const std::uint64_t most = std::min<std::uint64_t>((event_.memory.size() - 4096) / 2, 32768);
    for (std::uint64_t left = start, size = 0; left != 0; left -= size) {
      size = std::min(left, most);
      if (left != size && left - size < least) size -= least;
      const std::vector<std::byte> nothing(static_cast<std::size_t>(size - least + 4));
      if (output(nothing) != 0) throw std::runtime_error{"a record before the case was refused"};
      event_.page().data_tail = __atomic_load_n(&event_.page().data_head, __ATOMIC_ACQUIRE);
    }
    pollfd written{fd, POLLIN, 0};
    ::poll(&written, 1, 0);  // takes the flag (K26)
    if (event_.attr.disabled != 0) check(os::perf_event_disable(fd), "disable");
  }

 private:
  live::Emitter& emitter_;
  const Opened& event_;
};

}  // namespace

std::optional<std::string> why_not_live(const Case& of) {
  const script::Settings& settings = of.settings;
  if (settings.word == kernel::Word::k32) return "this machine's kernel has 64 bits";
  if (settings.start > kStartMax) return "this machine's kernel starts at 0, GiBs before";
  if (settings.start != 0 && of.asks_for_wakeups()) return "this machine's kernel starts at 0";
  if (settings.events > 1) return "no second event is opened on this machine's kernel";
  if (!of.absent.empty()) return "no CPU of this machine is taken offline";
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

void Opened::make_live(live::Emitter& emitter, std::uint64_t start) {
  // A program that enters it by itself does so once more.
  check(os::bpf_map_update(emitter.map_fd(), static_cast<std::uint32_t>(cpu),
                           static_cast<std::uint32_t>(file.get())),
        "BPF_MAP_UPDATE_ELEM");
  auto emitted = std::make_unique<Emitted>(emitter, *this);
  if (start != 0) emitted->move_to(start);
  live = std::move(emitted);
}

}  // namespace perfring::conformance
