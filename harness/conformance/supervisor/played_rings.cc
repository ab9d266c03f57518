// The rings in which a case is played, on the simulated kernel or the machine's own.

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/supervisor/emulated_calls.h"
#include "harness/conformance/supervisor/supervisor.h"
#include "harness/kernel/perf_event.h"
#include "harness/live/emitter.h"
#include "harness/live/live_kernel.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"
#include "perfring/os/cpus.h"
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

std::uint64_t shortest_payload(const Case& of) {
  std::uint64_t least = ~std::uint64_t{0};
  for (const Part& part : of.parts) {
    if (const auto* const fill = std::get_if<Fill>(&part)) least = std::min(least, fill->bytes);
    const auto* const steps = std::get_if<std::vector<script::Step>>(&part);
    if (steps == nullptr) continue;
    for (const script::Step& step : *steps) {
      if (step.action == script::Action::Output) least = std::min(least, step.number);
    }
  }
  return least;
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
    const std::uint64_t most = std::min<std::uint64_t>((event_.memory.size() - 4096) / 2, 32768);
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

void ProgramEvent::make_live(live::Emitter& emitter) {
  auto emitted = std::make_unique<Emitted>(emitter, *this);
  if (start != 0) {  // the program enters it again later
    check(os::bpf_map_update(emitter.map_fd(), static_cast<std::uint32_t>(cpu),
                             static_cast<std::uint32_t>(file.get())),
          "BPF_MAP_UPDATE_ELEM");
    emitted->move_to(start);
  }
  live = std::move(emitted);
}

std::string PlayedRings::why_impossible(const ProgramEvent& event) const {
  const script::Settings& wanted = case_.settings;
  const auto& type = event.attr.sample_type;
  const std::uint64_t pages = event.pages();
  if (wanted.word == kernel::Word::k32 && !event.of_32_bits) {
    return "a 32-bit kernel runs no 64-bit program";
  }
  if ((type & PERF_SAMPLE_RAW) == 0 || (type & ~kernel::kOpenedSampleTypes) != 0) {
    return fmt::format("sample_type {:#x} is not simulated", std::uint64_t{type});
  }
  if (const std::uint64_t least = shortest_payload(case_); least < reader_.least) {
    return fmt::format("its reader needs {} bytes of each payload, the case has one of {}",
                       reader_.least, least);
  }
  if (reader_.begins_at_0 && wanted.start >= pages * 4096) {
    return "the case presets its positions, but the program expects a new ring to start at 0";
  }
  const bool others = wanted.sample_type != PERF_SAMPLE_RAW || wanted.sample_id_all;
  if (others && (wanted.sample_type != type || wanted.sample_id_all != event.attr.sample_id_all)) {
    return "the case has another sample_type";
  }
  // A watermark above the ring's size counts as the ring's size (K30).
  const auto within = [&](std::uint64_t wakeup) {
    return wanted.watermark ? std::min(wakeup, pages * 4096) : wakeup;
  };
  const bool same_wakeups = wanted.watermark == (event.attr.watermark != 0) &&
                            within(wanted.wakeup) == within(event.attr.wakeup_events);
  if (case_.has_other_wakeups() && !same_wakeups) {
    return fmt::format("the case needs {} {}",
                       wanted.watermark ? "wakeup_watermark" : "wakeup_events", wanted.wakeup);
  }
  if (pages < wanted.pages || (case_.exact && pages != wanted.pages)) {
    return fmt::format("the ring has {} pages, the case needs {}", pages, wanted.pages);
  }
  return {};
}

// Returns the case's settings for a ring that may have more pages, and other fields in a sample.
script::Settings PlayedRings::settings_of(const ProgramEvent& event, bool plays) const {
  script::Settings settings = plays ? case_.settings : script::Settings{};
  // Keep the distance from the start to the ring's end in a longer ring.
  const std::uint64_t size = settings.pages * 4096;
  if (settings.start % size != 0 && settings.start < size) {
    settings.start += event.pages() * 4096 - size;
  }
  settings.pages = event.pages();
  settings.sample_type = event.attr.sample_type & kernel::kOpenedSampleTypes;
  settings.sample_id_all = event.attr.sample_id_all != 0;
  settings.watermark = event.attr.watermark != 0;
  settings.wakeup = event.attr.wakeup_events;
  return settings;
}

// Each event may be the one that the program will enter: many programs open one to try it, and
// close it.
void PlayedRings::map(ProgramEvent& event) {
  const bool plays = why_impossible(event).empty();
  const script::Settings settings = settings_of(event, plays);
  event.start = settings.start;
  mapped_.push_back(&event);
  if (emitter_ == nullptr) {
    event.make_ring(settings);
  } else if (plays) {
    try {
      event.make_live(*emitter_);
    } catch (const std::runtime_error& error) {
      impossible_ = {error.what(), true};
    }
  }
  begin();
}

void PlayedRings::enter(std::uint64_t key, ProgramEvent& event) {
  ProgramEvent*& entry = entries_[key];
  if (std::exchange(entry, &event) == &event) return;
  const bool is_played = std::ranges::any_of(
      played_, [&](const PlayedRing& each) { return each.cpu == key && each.event != &event; });
  if (is_played && (turns_ != 0 || has_registered_)) {
    misuse_ = fmt::format("it put another event at key {} of its map during the case", key);
  } else if (is_played) {
    producer_.reset();
  }
  begin();
}

void PlayedRings::take_out(std::uint64_t key) {
  if (entries_.erase(key) == 0 || producer_ == nullptr || is_over()) return;
  misuse_ = fmt::format("it deleted key {} of its map before the case was over", key);
}

ProgramEvent* PlayedRings::entered_on(std::size_t cpu) const {
  const auto entry = entries_.find(cpu);
  if (entry == entries_.end() || entry->second->memory.empty()) return nullptr;
  return entry->second->cpu == cpu ? entry->second : nullptr;
}

void PlayedRings::begin() {
  if (producer_ != nullptr || is_impossible()) return;
  std::vector<PlayedRing> played;
  std::vector<rig::SimulatedRing*> simulated;
  std::vector<LiveRing*> live;
  for (std::size_t cpu = 0; cpu < case_.cpus; ++cpu) {
    ProgramEvent* const event = entered_on(cpu);
    const bool absent = case_.absent.contains(cpu);
    if (!absent && event == nullptr) return;
    simulated.push_back(absent ? nullptr : event->ring.get());
    live.push_back(absent ? nullptr : event->live.get());
    if (absent) continue;
    if (!is_impossible()) impossible_ = {why_impossible(*event), true};
    played.push_back({cpu, event, {event->start, event->start, event->start}});
  }
  if (is_impossible()) return;
  played_ = std::move(played);
  producer_ = emitter_ == nullptr ? std::make_unique<CaseProducer>(case_, simulated, echo_)
                                  : std::make_unique<CaseProducer>(case_, live, echo_);
  try {
    has_registered_ = producer_->play_registration();
  } catch (const CannotPlay& error) {
    impossible_ = {error.what(), true};
  }
}

bool PlayedRings::play_turn() {
  if (producer_ == nullptr || is_impossible() || !misuse_.empty()) return false;
  try {
    if (!producer_->play_turn()) return false;
  } catch (const CannotPlay& error) {
    impossible_ = {error.what(), true};
    return false;
  }
  ++turns_;
  for (PlayedRing& each : played_) {
    const perf_event_mmap_page& page = each.event->page();
    each.tails = {page.data_tail, page.data_head, page.data_tail};
  }
  return true;
}

// bpf_perf_event_output() writes to the event at the current CPU's key, if the event is of this CPU
// (__bpf_perf_event_output, kernel/trace/bpf_trace.c at v6.18).
std::string PlayedRings::why_not_entered() const {
  for (std::size_t cpu = 0; cpu < case_.cpus; ++cpu) {
    if (case_.absent.contains(cpu) || entered_on(cpu) != nullptr) continue;
    const auto is_its = [&](const auto& entry) { return entry.second->cpu == cpu; };
    const auto entry = std::ranges::find_if(entries_, is_its);
    const std::string its = fmt::format("its event of CPU {} is ", cpu);
    if (entry == entries_.end()) return its + "in no map: nothing is written to it";
    if (entry->first == cpu) return its + "entered in its map, but its ring is not mapped";
    return its + fmt::format("at key {} of its map: nothing is written to it there", entry->first);
  }
  return {};
}

std::optional<PlayedRings::Obstacle> PlayedRings::obstacle() const {
  if (is_impossible()) return impossible_;
  if (!misuse_.empty()) return Obstacle{misuse_};
  const auto was_read = [](const ProgramEvent* event) { return event->was_read(); };
  if (emitter_ == nullptr && std::ranges::any_of(mapped_, was_read)) {
    return Obstacle{"read(2) of an event's descriptor is not emulated", true, true};
  }
  if (producer_ != nullptr) return std::nullopt;
  if (mapped_.empty()) {
    return Obstacle{"it opened no ring" + (refused_.empty() ? "" : ": " + refused_), false, true};
  }
  std::set<std::size_t> cpus;
  for (const ProgramEvent* const each : mapped_) cpus.insert(each->cpu);
  const auto needed = static_cast<std::size_t>(case_.cpus) - case_.absent.size();
  if (cpus.size() < needed) {
    return Obstacle{fmt::format("it opened rings on {} of the case's {} CPUs", cpus.size(), needed),
                    true};
  }
  return Obstacle{why_not_entered(), false, true};
}

}  // namespace perfring::conformance
