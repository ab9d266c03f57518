#include "harness/conformance/cases/case_producer.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <variant>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/ring_buffer.h"

namespace perfring::conformance {
namespace {

constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
constexpr std::uint64_t kLost = 24;  // bytes of a LOST without sample_id (K14)

// Returns the offset of the raw size in a sample: each of the other fields is a word (K19).
std::uint64_t raw_at(std::uint64_t sample_type) {
  return 8 + 8 * static_cast<std::uint64_t>(
                     std::popcount(sample_type & ~std::uint64_t{PERF_SAMPLE_RAW}));
}

// Returns the size of the raw data, padding included (K1).
std::uint64_t raw_size(std::uint64_t length) {
  return (length + 4 + 7) / 8 * 8 - 4;
}

constexpr std::uint64_t kWords = 24;  // bytes that a consumer prints of Echo::Words

// Keeps the first `bytes` bytes of a sample. The rest of `printed` bytes may have any value.
void cut(Event& event, std::uint64_t bytes, std::uint64_t printed) {
  event.payload.resize(static_cast<std::size_t>(bytes));
  event.padding = printed - bytes;
}

bool is_patched(const Case& of, std::uint64_t output) {
  return std::ranges::any_of(of.parts, [&](const Part& part) {
    const auto* const patch = std::get_if<Patch>(&part);
    return patch != nullptr && patch->field != Patch::Field::Head && patch->output == output;
  });
}

}  // namespace

std::vector<std::byte> payload_of(std::uint64_t output, std::uint64_t length, Echo echo) {
  const bool text = echo == Echo::Text;
  const std::uint64_t filling = text ? 'g' + output % 20 : 0xa1 + output % 0x5e;
  std::vector<std::byte> payload(static_cast<std::size_t>(length), static_cast<std::byte>(filling));
  const std::array<std::uint64_t, 3> words{0, output + 1, (output + 1) * kOdd};
  std::vector<std::byte> name;
  std::ranges::copy(std::as_bytes(std::span{words}), std::back_inserter(name));
  if (echo != Echo::Words) name.erase(name.begin(), name.begin() + 8);
  if (text) {  // the low digit of each byte first
    std::vector<std::byte> digits;
    for (const std::byte each : name) {
      for (const unsigned digit :
           {static_cast<unsigned>(each) % 16, static_cast<unsigned>(each) / 16})
        digits.push_back(static_cast<std::byte>("0123456789abcdef"[digit]));
    }
    name = std::move(digits);
  }
  name.resize(std::min(name.size(), payload.size()));
  std::ranges::copy(name, payload.begin());
  return payload;
}

rig::Identity identity_of_cpu(std::size_t cpu) {
  return {.cpu = static_cast<int>(cpu), .pid = 0, .tid = 0, .ids = {2 * cpu + 1, 2 * cpu + 2}};
}

CaseRings::CaseRings(const Case& of) {
  for (std::size_t cpu = 0; cpu < of.cpus; ++cpu) {
    if (!of.absent.contains(cpu)) {
      own_.push_back(std::make_unique<rig::SimulatedRing>(of.settings, identity_of_cpu(cpu)));
    }
    all_.push_back(of.absent.contains(cpu) ? nullptr : own_.back().get());
  }
}

CaseProducer::CaseProducer(const Case& of, std::span<const CaseRing> rings, Echo echo)
    : case_{of}, echo_{echo} {
  for (const CaseRing& ring : rings) {
    const bool absent = std::visit([](const auto* of_cpu) { return of_cpu == nullptr; }, ring);
    cpus_.push_back(absent ? nullptr : std::make_unique<Cpu>(*this, cpus_.size(), ring));
  }
  const auto is_present = [](const auto& cpu) { return cpu != nullptr; };
  current_cpu_ = std::ranges::find_if(cpus_, is_present)->get();
}

CaseProducer::CaseProducer(const Case& of, const CaseRings& rings)
    : CaseProducer{of, std::vector<CaseRing>{rings.all().begin(), rings.all().end()}, Echo::Bytes} {
}

LiveRing* CaseProducer::Cpu::live() const {
  const auto* const found = std::get_if<LiveRing*>(&ring);
  return found == nullptr ? nullptr : *found;
}

std::uint64_t CaseProducer::Cpu::sample_type() const {
  return live() != nullptr ? live()->sample_type() : simulated().settings().sample_type;
}

bool CaseProducer::play_registration() {
  const auto is_registered = [](const Part& part) {
    return std::holds_alternative<Registered>(part);
  };
  const auto registered = std::ranges::find_if(case_.parts, is_registered);
  if (registered == case_.parts.end()) return false;
  for (; !is_registered(case_.parts[next_]); ++next_) play(case_.parts[next_]);
  return true;
}

// The records that are written while the consumer drains belong to its next turn.
void CaseProducer::open_turn() {
  if (std::exchange(is_turn_open_, true)) return;
  for (const auto& cpu : cpus_) {
    if (cpu != nullptr) cpu->turn_from = cpu->written.size();
  }
}

bool CaseProducer::play_during(During::Place place) {
  const auto* const during = is_over() ? nullptr : std::get_if<During>(&case_.parts[next_]);
  if (during == nullptr || during->place != place) return false;
  open_turn();
  const auto ends = [](const Part& part) {
    return std::holds_alternative<During>(part) || std::holds_alternative<Drain>(part) ||
           std::holds_alternative<Laps>(part);
  };
  while (!ends(case_.parts[++next_])) play(case_.parts[next_]);  // a case ends with a drain
  return true;
}

bool CaseProducer::is_boundary(std::size_t cpu, std::uint32_t position) const {
  return std::ranges::any_of(cpus_[cpu]->written, [position](const Written& each) {
    const auto is_here = [position](std::uint64_t at) {
      return static_cast<std::uint32_t>(at) == position;
    };
    return is_here(each.position - each.lost_size) || is_here(each.position) ||
           is_here(each.position + each.size);
  });
}

std::optional<std::uint64_t> CaseProducer::position_of(std::size_t cpu, std::size_t event) const {
  std::size_t next = 0;
  for (const Written& each : cpus_[cpu]->written) {
    const std::uint64_t lost = each.position - each.lost_size;
    if (each.lost_size != 0 && next++ == event) return lost;
    if (each.size != 0 && next++ == event) return each.position;
  }
  return std::nullopt;
}

bool CaseProducer::play_turn() {
  open_turn();
  static constexpr Drain kByLedger;
  for (drain_ = nullptr; drain_ == nullptr && next_ < case_.parts.size();) {
    const auto* const laps = std::get_if<Laps>(&case_.parts[next_]);
    play(case_.parts[next_]);
    drain_ = laps != nullptr ? &kByLedger : std::get_if<Drain>(&case_.parts[next_]);
    if (laps != nullptr && ++lap_ < laps->turns) continue;
    lap_ = 0;
    ++next_;
  }
  if (drain_ == nullptr) return false;
  check_stated();
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (cpus_[i] != nullptr) std::ranges::copy(expected(i), std::back_inserter(cpus_[i]->so_far));
  }
  is_turn_open_ = false;
  return true;
}

bool CaseProducer::has_other_fields() const {
  return std::ranges::any_of(cpus_, [this](const auto& cpu) {
    return cpu != nullptr && cpu->sample_type() != case_.settings.sample_type;
  });
}

// Throws CannotPlay if the ring's other fields make the ledger differ from the case. Patched and
// oversized records are exempt, because only the case states their events.
void CaseProducer::check_stated() const {
  if (!has_other_fields() || !case_.is_plain()) return;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (cpus_[i] == nullptr || expected(i) == events_by_ledger(i)) continue;
    throw CannotPlay{"the samples have more fields than the case's, and find room otherwise"};
  }
}

std::vector<Event> CaseProducer::events_by_ledger(std::size_t cpu) const {
  std::vector<Event> events;
  for (const Written& each : std::span{cpus_[cpu]->written}.subspan(cpus_[cpu]->turn_from)) {
    if (each.lost_size != 0) events.push_back({.kind = Wanted::Kind::Lost, .lost = each.lost});
    if (each.size != 0) events.push_back(sample(each.output));
  }
  return events;
}

std::vector<Event> CaseProducer::expected(std::size_t cpu) const {
  if (!drain_->stated) return events_by_ledger(cpu);
  std::vector<Event> events;
  for (const Wanted& wanted : drain_->wanted) {
    Event event{.kind = wanted.kind};
    if (wanted.kind == Wanted::Kind::Lost) event.lost = wanted.number;
    if (wanted.kind == Wanted::Kind::Sample || wanted.kind == Wanted::Kind::Maybe) {
      if (outputs_.at(static_cast<std::size_t>(wanted.number)).cpu != cpu) continue;
      event = sample(wanted.number);
      event.kind = wanted.kind;
      event.damaged = wanted.kind == Wanted::Kind::Maybe && is_patched(case_, wanted.number);
    }
    if (wanted.cut) {
      const std::uint64_t left = std::min<std::uint64_t>(*wanted.cut, event.payload.size());
      cut(event, left, echo_ == Echo::Words ? kWords : left);
    }
    events.push_back(std::move(event));
  }
  return events;
}

bool CaseProducer::has_expected() const {
  return std::ranges::any_of(
      cpus_, [](const auto& cpu) { return cpu != nullptr && !cpu->so_far.empty(); });
}

Event CaseProducer::sample(std::uint64_t output) const {
  const std::uint64_t length = outputs_.at(static_cast<std::size_t>(output)).length;
  const std::uint64_t size = raw_size(length);
  Event event{.payload = payload_of(output, length, echo_), .padding = size - length};
  if (echo_ == Echo::Words) cut(event, std::min(length, kWords), kWords);
  return event;
}

void CaseProducer::play(const Part& part) {
  if (const auto* const steps = std::get_if<std::vector<script::Step>>(&part)) {
    carry_out(*steps);
  } else if (const auto* const filling = std::get_if<Fill>(&part)) {
    fill(*filling);
  } else if (const auto* const laps = std::get_if<Laps>(&part)) {
    const script::Step step{.action = script::Action::Output, .number = laps->bytes};
    output({&step, 1});
  } else if (const auto* const patching = std::get_if<Patch>(&part)) {
    patch(*patching);
  } else if (const auto* const on = std::get_if<OnCpu>(&part)) {
    current_cpu_ = cpus_[static_cast<std::size_t>(on->cpu)].get();
  } else if (const auto* const plug = std::get_if<Hotplug>(&part); plug && !plug->online) {
    for (const kernel::perf_file& event : current_cpu_->simulated().events())
      kernel::perf_event_exit_cpu(*event);
  }
}

void CaseProducer::carry_out(std::span<const script::Step> steps) {
  while (!steps.empty()) {
    const auto first = script::first_with_nested(steps);
    if (first.front().action == script::Action::Output) {
      output(first);
    } else if (LiveRing* const live = current_cpu_->live()) {
      live->control(first.front().action);
    } else {
      control(first.front().action);
    }
    steps = steps.subspan(first.size());
  }
}

void CaseProducer::control(script::Action action) {
  using script::Action;
  kernel::perf_event& event = current_cpu_->simulated().event();
  if (action == Action::Disable) return kernel::perf_event_disable(event);
  if (action == Action::Enable) return kernel::perf_event_enable(event);
  if (action != Action::Pause && action != Action::Resume) {
    throw std::logic_error{case_.id + ": a step that is not a producer's"};
  }
  kernel::perf_event_pause_output(event, action == Action::Pause);
}

int CaseProducer::output(std::span<const script::Step> step_and_nested) {
  const script::Step& step = step_and_nested.front();
  const std::uint64_t number = outputs_.size();
  // With more fields in a sample, header.size reaches 65536 that much earlier (K3).
  const std::uint64_t more =
      raw_at(current_cpu_->sample_type()) - raw_at(case_.settings.sample_type);
  const std::uint64_t length = step.number > kNearlyOversize ? step.number - more : step.number;
  outputs_.push_back({length, static_cast<std::size_t>(current_cpu_->id)});
  const std::vector<std::byte> payload = payload_of(number, length, echo_);
  active_steps_.begin(step_and_nested);
  frame() = {.output = number, .length = length};
  LiveRing* const live = current_cpu_->live();
  const int rc =
      live != nullptr ? live_output(*live, payload) : simulated_output(step.second, payload);
  refused_ += rc != 0 && rc != -ENOSPC ? 1 : 0;
  active_steps_.perform_rest([this](bool, auto due) { output(due); });
  active_steps_.end();
  return rc;
}

int CaseProducer::simulated_output(bool second, std::span<const std::byte> payload) {
  const rig::SimulatedRing& ring = current_cpu_->simulated();
  const __u64 index = ring.index(second && ring.events().size() > 1);
  return kernel::bpf_perf_event_output(*current_cpu_, ring.map(), index, payload);
}

// Derives the ledger from the kernel's return values: the LOST before the next accepted output
// counts the outputs that found no room, or came during a pause (K15, K41).
int CaseProducer::live_output(LiveRing& ring, std::span<const std::byte> payload) {
  const int rc = ring.output(payload);
  if (rc == -ENOSPC) ++current_cpu_->unreported;
  if (rc != 0) return rc;
  const std::uint64_t lost = std::exchange(current_cpu_->unreported, 0);
  note_reservation(0, static_cast<std::size_t>(sample_size() + (lost != 0 ? kLost : 0)));
  return note_report(lost), rc;
}

// Returns the header.size of the output in progress, which has 16 bits (K6).
std::uint64_t CaseProducer::sample_size() {
  return (raw_at(current_cpu_->sample_type()) + 4 + raw_size(frame().length)) % 65536;
}

void CaseProducer::note_reservation(std::uint64_t position, std::size_t size) {
  const std::uint64_t own = sample_size();
  frame().written = current_cpu_->written.size();
  current_cpu_->written.push_back({.output = frame().output,
                                   .length = frame().length,
                                   .position = position + size - own,
                                   .lost_size = size - own,
                                   .size = own});
}

void CaseProducer::note_report(std::uint64_t lost) {
  current_cpu_->written.at(frame().written).lost = lost;
}

void CaseProducer::fill(const Fill& fill) {
  const script::Step step{.action = script::Action::Output, .number = fill.bytes};
  while (output({&step, 1}) == 0) continue;
}

void CaseProducer::patch(const Patch& patch) {
  using Field = Patch::Field;
  if (patch.field == Field::Head) {
    __u64& head = current_cpu_->simulated().page().data_head;
    head = current_cpu_->simulated().rb().unsigned_long(head + patch.value);
    // Like any change of data_head, it wakes the consumer.
    kernel::perf_output_handle handle{.event = &current_cpu_->simulated().event(),
                                      .rb = &current_cpu_->simulated().rb()};
    return kernel::perf_output_wakeup(*current_cpu_, handle);
  }
  const auto found = std::ranges::find(current_cpu_->written, patch.output, &Written::output);
  const std::uint64_t lost_size = found == current_cpu_->written.end() ? 0 : found->lost_size;
  if (has_other_fields() && (found == current_cpu_->written.end() ||
                             (patch.field >= Field::LostType && lost_size == 0))) {
    throw CannotPlay{"the samples have more fields than the case's, and find room otherwise"};
  }
  if (found == current_cpu_->written.end())
    throw std::logic_error{case_.id + ": a patch of an output that was not written"};
  const std::uint64_t lost = found->position - found->lost_size;
  if (patch.field >= Field::LostType && found->lost_size == 0) {
    throw std::logic_error{case_.id + ": a patch of a LOST that was not written"};
  }
  switch (patch.field) {
    case Field::Head:
      break;
    case Field::Type:
      return store(found->position, patch.value, 4);
    case Field::Misc:
      return store(found->position + 4, patch.value, 2);
    case Field::Size:
      return store(found->position + 6, patch.value, 2);
    case Field::Raw:
      return store(found->position + raw_at(current_cpu_->sample_type()), patch.value, 4);
    case Field::LostType:
      return store(lost, patch.value, 4);
    case Field::LostSize:
      return store(lost + 6, patch.value, 2);
    case Field::LostCount:
      return store(lost + kLost - 8, patch.value, 8);
  }
}

// Stores the lowest `size` bytes of the value, in this machine's byte order.
void CaseProducer::store(std::uint64_t position, std::uint64_t value, std::size_t size) {
  std::array<std::byte, 8> bytes;
  std::memcpy(bytes.data(), &value, sizeof(value));
  const std::size_t from = std::endian::native == std::endian::little ? 0 : 8 - size;
  kernel::perf_buffer& rb = current_cpu_->simulated().rb();
  for (std::size_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>((position + i) % rb.data_size());
    rb.data_pages[at] = bytes[from + i];
  }
}

}  // namespace perfring::conformance
