#include "harness/conformance/supervisor/played_rings.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "harness/conformance/supervisor/traced_process.h"
#include "harness/kernel/perf_event.h"

namespace perfring::conformance {
namespace {

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

}  // namespace

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
  try {
    backend_.make_producer(event, settings, plays);
  } catch (const std::runtime_error& error) {
    impossible_ = {error.what(), true};
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
    played_.clear();
  }
  begin();
}

void PlayedRings::take_out(std::uint64_t key) {
  if (entries_.erase(key) == 0 || producer_ == nullptr || is_over()) return;
  misuse_ = fmt::format("it deleted key {} of its map before the case was over", key);
}

ProgramEvent* PlayedRings::entered_on(std::size_t cpu) const {
  const auto entry = entries_.find(cpu);
  if (entry == entries_.end() || !entry->second->is_mapped()) return nullptr;
  return entry->second->cpu == cpu ? entry->second : nullptr;
}

void PlayedRings::begin() {
  if (producer_ != nullptr || is_impossible()) return;
  std::vector<PlayedRing> played;
  std::vector<CaseRing> rings;
  for (std::size_t cpu = 0; cpu < case_.cpus; ++cpu) {
    ProgramEvent* const event = entered_on(cpu);
    const bool absent = case_.absent.contains(cpu);
    if (!absent && event == nullptr) return;
    rings.push_back(absent ? CaseRing{} : event->played());
    if (absent) continue;
    if (!is_impossible()) impossible_ = {why_impossible(*event), true};
    played.push_back({cpu, event, {event->start, event->start, event->start}});
  }
  if (is_impossible()) return;
  played_ = std::move(played);
  producer_ = std::make_unique<CaseProducer>(case_, rings, echo_);
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

std::string PlayedRings::misplaced() const {
  if (producer_ != nullptr || is_impossible()) return {};
  std::set<std::size_t> entered;
  for (const auto& [key, event] : entries_) {
    if (event->is_mapped()) entered.insert(event->cpu);
  }
  const bool are_all = entered.size() == case_.cpus - case_.absent.size();
  return are_all ? why_not_entered() : std::string{};
}

std::optional<PlayedRings::Obstacle> PlayedRings::obstacle() const {
  if (is_impossible()) return impossible_;
  if (!misuse_.empty()) return Obstacle{misuse_};
  const auto was_read = [](const ProgramEvent* event) { return event->was_read(); };
  if (std::ranges::any_of(mapped_, was_read)) {
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

std::vector<std::uint64_t> PlayedRings::progress() const {
  std::vector<std::uint64_t> now{mapped_.size(), entries_.size(), turns_};
  for (const ProgramEvent* const each : mapped_) now.push_back(each->page().data_tail);
  return now;
}

bool PlayedRings::are_all_read() const {
  return std::ranges::all_of(
      played_, [](const PlayedRing& each) { return each.now().moved() == each.now().published(); });
}

void PlayedRings::judge_places(Cell& cell) const {
  for (const PlayedRing& each : played_) judge_place(each.now(), cell);
}

// Whether the program is told of each record: the case has wakeups of its own, or the event has one
// for each record.
bool PlayedRings::is_announced(const ProgramEvent& event) const {
  const perf_event_attr& attr = event.attr;
  return case_.has_other_wakeups() ||
         (attr.watermark != 0 ? attr.wakeup_watermark <= 8 : attr.wakeup_events == 1);
}

void PlayedRings::judge_unread(Cell& cell, bool sleeps) const {
  if (!is_over() || case_.accepts_outcome(Accept::Stops)) return;
  for (const PlayedRing& each : played_) {
    const Tails now = each.now();
    if (now.moved() >= now.published() || !is_announced(*each.event)) continue;
    cell.worsen(CaseOutcome::Loses,
                (sleeps ? "it slept although records were announced to it: "
                        : "it kept waiting, and did not read the records announced to it: ") +
                    to_text(now));
  }
}

void PlayedRings::judge_tails(Cell& cell) const {
  for (const PlayedRing& each : played_) judge_tail(case_, each.now(), cell);
}

std::vector<std::span<const Event>> PlayedRings::expected() const {
  std::vector<std::span<const Event>> all;
  for (const PlayedRing& each : played_) all.emplace_back(producer_->expected_so_far(each.cpu));
  return all;
}

PlayedRings::PlayedRing* PlayedRings::ring_at(std::uint64_t base) {
  const auto found = std::ranges::find_if(played_, [base](const PlayedRing& each) {
    return std::ranges::find(each.event->bases, base) != each.event->bases.end();
  });
  return found == played_.end() ? nullptr : &*found;
}

// A word of 8 bytes, or each half of one that is accessed in two halves.
void PlayedRings::access(const PageAccess& access, Cell& cell) {
  using Moment = PageAccess::Moment;
  using Place = During::Place;
  PlayedRing* const ring = ring_at(access.base);
  if (ring == nullptr) return;
  const perf_event_mmap_page& page = ring->event->page();
  const std::uint64_t word = access.offset / 8 * 8;
  const bool is_tail = word == offsetof(perf_event_mmap_page, data_tail);
  if (access.moment == Moment::ReadDone && word == offsetof(perf_event_mmap_page, data_head)) {
    ring->accesses.read_head(page.data_head);
    producer_->play_during(Place::HeadRead);
  } else if (access.moment == Moment::StoreDue) {
    if (is_tail) producer_->play_during(Place::TailStore);
    ring->due = {page.data_tail, page.data_head, page.data_tail};
  } else if (access.moment == Moment::StoreDone) {
    const Tails now{ring->due.before, ring->due.head, page.data_tail};
    if (page.data_head != now.head) ring->accesses.store_head(now.head, page.data_head, cell);
    if (now.after != now.before && case_.is_plain()) {
      ring->accesses.store_tail(*producer_, ring->cpu, now, cell);
      overwrite_released(ring->event->memory().subspan(4096), now);
    }
    if (is_tail) producer_->play_during(Place::TailStored);
  }
}

std::string PlayedRings::explain(std::span<const Event> delivered, bool died) const {
  if (played_.size() != 1 || !case_.is_plain()) return {};
  return played_.front().accesses.explain(*producer_, played_.front().cpu, delivered, died);
}

std::string PlayedRings::place_of(std::uint64_t address) const {
  for (const ProgramEvent* const each : mapped_) {
    const std::uint64_t length = each->memory().size();
    for (const std::uint64_t base : each->bases) {
      if (std::string place = place_near(address, base, length); !place.empty()) return place;
    }
  }
  return {};
}

std::string PlayedRings::positions() const {
  std::string text;
  for (const PlayedRing& each : played_) {
    text += "; " + to_text(each.now());
  }
  return text;
}

}  // namespace perfring::conformance
