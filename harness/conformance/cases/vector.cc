#include "harness/conformance/cases/vector.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <expected>
#include <map>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "harness/conformance/subjects.h"
#include "harness/kernel/perf_event.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/rig/simulated_ring.h"

namespace perfring::conformance {
namespace {

constexpr std::size_t kGap = 16;     // unchanged bytes that a write may include
constexpr std::size_t kRepeat = 24;  // this many equal bytes are counted

std::vector<Write> writes_between(std::span<const std::byte> before,
                                  std::span<const std::byte> after) {
  std::vector<Write> writes;
  std::size_t end = 0;  // of the last write
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (before[i] == after[i]) continue;
    if (writes.empty() || i - end > kGap) {
      writes.push_back({i, {}});
      end = i;
    }
    for (; end <= i; ++end) writes.back().bytes.push_back(after[end]);
  }
  return writes;
}

Json to_json(const Event& event) {
  switch (event.kind) {
    case Wanted::Kind::Lost:
      return {{"lost", std::to_string(event.lost)}};
    case Wanted::Kind::Bad:
      return {{"error", true}};
    default:
      return {{event.kind == Wanted::Kind::Maybe ? "maybe" : "sample", to_text(event.payload)},
              {"padding", event.padding}};
  }
}

Json to_json(const Turn& turn) {
  Json writes = Json::array();
  for (const Write& write : turn.writes) writes.push_back({write.at, to_text(write.bytes)});
  Json expected = Json::array();
  for (const Event& event : turn.expected) expected.push_back(to_json(event));
  return {{"cpu", turn.cpu},
          {"head", std::to_string(turn.head)},
          {"writes", writes},
          {"expected", expected}};
}

Json to_json(const Vector& vector) {
  const Case& of = *vector.of;
  Json accept = Json::array();
  for (const Accept each : of.accepts) accept.push_back(to_string(each));
  Json turns = Json::array();
  for (const Turn& turn : vector.turns) turns.push_back(to_json(turn));
  return {{"id", of.id},
          {"title", of.title},
          {"since", of.since},
          {"reachable", of.reachable},
          {"facts", of.facts},
          {"accept", accept},
          {"word", of.settings.word == kernel::Word::k32 ? 32 : 64},
          {"cpus", of.cpus},
          {"pages", of.settings.pages},
          {"sample_type", of.settings.sample_type},
          {"sample_id_all", of.settings.sample_id_all},
          {"start", std::to_string(of.settings.start)},
          {"turns", turns}};
}

}  // namespace

std::vector<Turn> Vector::once_more() const {
  std::map<std::size_t, Turn> last;
  for (const Turn& turn : turns) last[turn.cpu] = Turn{turn.cpu, turn.head, {}, {}, {}};
  std::vector<Turn> more;
  for (const auto& [cpu, turn] : last) more.push_back(turn);
  return more;
}

namespace {

// Plays what is written of the next turn during the drain before it, in a case of one CPU.
std::vector<Early> early_parts(CaseProducer& producer, rig::SimulatedRing& ring,
                               std::span<const std::byte> before) {
  using Place = During::Place;
  std::vector<Early> early;
  const auto plays = [&](Place place) {
    if (!producer.play_during(place)) return false;
    early.push_back({place, ring.page().data_head, writes_between(before, ring.data()),
                     producer.events_by_ledger(0).size()});
    return true;
  };
  while (plays(Place::HeadRead) || plays(Place::TailStore) || plays(Place::TailStored)) continue;
  return early;
}

}  // namespace

Vector vector_of(const Case& one) {
  const CaseRings own{one};
  const std::span<rig::SimulatedRing* const> rings = own.all();
  CaseProducer producer{one, own};
  Vector vector{&one, {}};
  std::vector<std::vector<std::byte>> before(rings.size());
  std::vector<Early> early;
  while (producer.play_turn()) {
    for (std::size_t cpu = 0; cpu < rings.size(); ++cpu) {
      rig::SimulatedRing* const ring = rings[cpu];
      if (ring == nullptr) continue;
      perf_event_mmap_page& page = ring->page();
      before[cpu].resize(ring->data().size());
      vector.turns.push_back({cpu, page.data_head, writes_between(before[cpu], ring->data()),
                              producer.expected(cpu), std::move(early)});
      before[cpu].assign(ring->data().begin(), ring->data().end());
      // A consumer's own position has 64 bits; a kernel's may have 32 (K47).
      page.data_tail += static_cast<std::uint32_t>(page.data_head - page.data_tail);
    }
    early.clear();
    if (one.cpus == 1) early = early_parts(producer, *rings[0], before[0]);
  }
  return vector;
}

std::string index_of(const std::vector<Vector>& vectors) {
  Json accepted;
  for (const Accept each : all_accepts()) accepted[to_string(each)] = reason(each);
  const bool little = std::endian::native == std::endian::little;
  Json head{{"version", suite().version},
            {"byte_order", little ? "little" : "big"},
            {"accepted", accepted},
            {"cases", Json::array()}};
  // One line per case, so that a diff shows which case changed.
  std::string text = head.dump();
  text.resize(text.size() - 2);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    text += fmt::format("{}\n{}", i == 0 ? "" : ",", to_json(vectors[i]).dump());
  }
  return text + "\n]}\n";
}

std::string to_text(std::span<const std::byte> bytes) {
  std::string text;
  bool apart = false;  // a repetition precedes
  for (std::size_t i = 0; i < bytes.size();) {
    std::size_t end = i;
    while (end < bytes.size() && bytes[end] == bytes[i]) ++end;
    const auto byte = static_cast<unsigned>(bytes[i]);
    if (end - i >= kRepeat) {
      text += fmt::format("{}{:02x}*{}", text.empty() ? "" : " ", byte, end - i);
      i = end;
      apart = true;
      continue;
    }
    text += fmt::format("{}{:02x}", apart ? " " : "", byte);
    apart = false;
    ++i;
  }
  return text;
}

RingImage::RingImage(const Vector& vector)
    : memory_{static_cast<std::size_t>(vector.of->settings.pages)} {
  written_.assign(data().begin(), data().end());
  page().data_offset = 4096;
  page().data_size = data().size();
  const std::uint64_t start = vector.of->settings.start;
  page().data_tail = start;
  page().data_head = vector.of->settings.word == kernel::Word::k32 ? start & 0xffff'ffff : start;
}

std::vector<RingImage> images_of(const Vector& vector) {
  std::vector<RingImage> images;
  images.reserve(static_cast<std::size_t>(vector.of->cpus));
  for (std::uint64_t i = 0; i < vector.of->cpus; ++i) images.emplace_back(vector);
  return images;
}

void RingImage::apply(const Turn& turn) {
  std::ranges::copy(written_, data().begin());
  write(turn.writes, turn.head);
}

void RingImage::apply(const Early& early) {
  write(early.writes, early.head);
}

bool RingImage::has_room_for(const Early& early) const {
  return static_cast<std::uint32_t>(early.head - page().data_tail) <= data().size();
}

void RingImage::write(const std::vector<Write>& writes, std::uint64_t head) {
  for (const Write& each : writes) {
    const auto at = static_cast<std::ptrdiff_t>(each.at);
    std::ranges::copy(each.bytes, data().begin() + at);
    std::ranges::copy(each.bytes, written_.begin() + at);
  }
  __atomic_store_n(&page().data_head, head, __ATOMIC_RELEASE);
}

namespace {

using Kind = Wanted::Kind;
using Events = std::expected<std::vector<Event>, std::string>;

Events read_lines(const std::string& out) {
  auto printed = parse_printed(out);
  if (!printed) return std::unexpected(printed.error());
  return std::move(printed->events);
}

// bpftool passes on a record of another type, without data. That counts as a reported error.
Events read_bpftool(const std::string& out) {
  std::vector<Event> events;
  try {
    for (const auto& one : Json::parse(out)) {
      Event event{.kind = Wanted::Kind::Bad};
      if (one.contains("lost")) {
        event = {.kind = Wanted::Kind::Lost, .lost = one.at("lost").at("count")};
      } else if (one.contains("data")) {
        event.kind = Wanted::Kind::Sample;
        for (const auto& byte : one.at("data")) {
          event.payload.push_back(static_cast<std::byte>(byte.get<std::uint8_t>()));
        }
      }
      events.push_back(std::move(event));
    }
  } catch (const std::exception& error) {
    return std::unexpected(one_line(error.what()));
  }
  return events;
}

// Calls `take` with each line. `take` returns false for a line that it does not understand.
template <class Take>
Events read_each_line(const std::string& out, Take take) {
  std::vector<Event> events;
  for (const auto part : std::views::split(out, '\n')) {
    const std::string_view line{part.begin(), part.end()};
    if (!line.empty() && !take(line, events)) return std::unexpected(in_quotes(one_line(line)));
  }
  return events;
}

// Returns the number in "prefix NUMBER suffix".
std::optional<std::uint64_t> number_in(std::string_view line, std::string_view prefix,
                                       std::string_view suffix) {
  if (!line.starts_with(prefix) || !line.ends_with(suffix)) return std::nullopt;
  line.remove_prefix(prefix.size());
  return parse_number(line.substr(0, line.size() - std::min(suffix.size(), line.size())));
}

// Reads bpftrace's output for BEGIN { printf("seq %llu sum %llx\n", nsecs, nsecs); }. Its records
// have the number of the printf, which is 0, and two words (P26).
Events read_bpftrace(const std::string& out) {
  return read_each_line(out, [](std::string_view line, std::vector<Event>& events) {
    if (line.starts_with("Attaching ")) return true;
    if (const auto lost = number_in(line, "Lost ", " events")) {
      events.push_back({.kind = Kind::Lost, .lost = *lost});
      return true;
    }
    std::array<std::uint64_t, 3> words{};
    const std::string text{line};
    int end = 0;
    if (std::sscanf(text.c_str(), "seq %" SCNu64 " sum %" SCNx64 "%n", &words[1], &words[2],
                    &end) != 2 ||
        static_cast<std::size_t>(end) != text.size()) {
      return false;
    }
    const auto bytes = std::as_bytes(std::span{words});
    events.push_back({.payload = {bytes.begin(), bytes.end()}});
    return true;
  });
}

// Reads perf trace's output for an event named evt. perf trace reports a record that it cannot
// parse as an error.
Events read_perf_trace(const std::string& out) {
  return read_each_line(out, [](std::string_view line, std::vector<Event>& events) {
    constexpr std::string_view kName = " evt(";
    const std::size_t name = line.find(kName);
    if (const auto lost = number_in(line, "LOST ", " events!")) {
      events.push_back({.kind = Kind::Lost, .lost = *lost});
    } else if (name != std::string_view::npos && line.ends_with(')')) {
      line = line.substr(name + kName.size());
      const auto bytes = std::as_bytes(std::span{line.substr(0, line.size() - 1)});
      events.push_back({.payload = {bytes.begin(), bytes.end()}});
    } else if (line.starts_with("Can't parse sample") || line.starts_with("failed to keep up")) {
      events.push_back({.kind = Kind::Bad});
    } else {
      return false;
    }
    return true;
  });
}

}  // namespace

std::span<const Reader> readers() {
  static constexpr std::array kAll{
      Reader{.name = "lines", .read = read_lines},
      Reader{.name = "lines-24", .read = read_lines, .echo = Echo::Words, .least = 24},
      Reader{.name = "bpftool", .read = read_bpftool},
      Reader{.name = "bpftrace",
             .read = read_bpftrace,
             .echo = Echo::Words,
             .least = 16,
             .loads_programs = true},
      Reader{.name = "perf-trace",
             .read = read_perf_trace,
             .echo = Echo::Text,
             .begins_at_0 = true,
             .is_entered = true},
  };
  return kAll;
}

const Reader& reader_of(std::string_view name) {
  const auto found = std::ranges::find(readers(), name, &Reader::name);
  if (found == readers().end()) throw std::logic_error{"no reader " + std::string{name}};
  return *found;
}

}  // namespace perfring::conformance
