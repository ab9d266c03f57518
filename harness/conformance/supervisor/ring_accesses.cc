#include "harness/conformance/supervisor/ring_accesses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace perfring::conformance {
namespace {

constexpr std::byte kReleased{0xa0};  // payload_of() fills with 0xa1 and more, and with text

// Whether the position is in [from, to), by the low 32 bits.
bool is_in(std::uint64_t position, std::uint64_t from, std::uint64_t to) {
  return static_cast<std::uint32_t>(position - from) < static_cast<std::uint32_t>(to - from);
}

}  // namespace

bool is_of_released_bytes(const Event& event) {
  constexpr std::array kSome{kReleased, kReleased, kReleased, kReleased};
  return event.kind == Wanted::Kind::Bad || !std::ranges::search(event.payload, kSome).empty();
}

void RingAccesses::note(CaseOutcome outcome, const std::string& what, Cell& cell) {
  if (wrong_.empty()) wrong_ = what;
  cell.worsen(outcome, what);
}

void RingAccesses::store_head(std::uint64_t from, std::uint64_t to, Cell& cell) {
  note(CaseOutcome::Garbage, stored_to_head(from, to), cell);
}

void RingAccesses::store_tail(const CaseProducer& producer, std::size_t cpu, const Tails& tails,
                              Cell& cell) {
  stores_.push_back({tails.before, tails.after, std::exchange(heads_, {})});
  if (static_cast<std::int32_t>(tails.moved()) < 0) {
    note(CaseOutcome::Loses, "data_tail was moved backwards: " + to_text(tails), cell);
  } else if (tails.moved() > tails.published()) {
    judge_place(tails, cell);
  } else if (!producer.is_boundary(cpu, static_cast<std::uint32_t>(tails.after))) {
    note(CaseOutcome::Garbage, "data_tail was moved into a record: " + to_text(tails), cell);
  }
}

std::string RingAccesses::explain(const CaseProducer& producer, std::size_t cpu,
                                  std::span<const Event> delivered, bool died) const {
  if (!wrong_.empty()) return wrong_;
  const auto& expected = producer.expected_so_far(cpu);
  const std::size_t first = first_difference(expected, delivered);
  const auto record = producer.position_of(cpu, first);
  if (!record) return {};
  const auto store = std::ranges::find_if(
      stores_, [&](const Store& each) { return is_in(*record, each.from, each.to); });
  if (store == stores_.end()) return {};
  const bool is_early = first == delivered.size() ? died : is_of_released_bytes(delivered[first]);
  if (is_early) {
    return fmt::format("data_tail was moved to {} while the record at {} was still being read",
                       store->to, *record);
  }
  // Another event in its place, such as one that is delivered again, has another cause.
  const auto rest = std::span{expected}.subspan(first);
  if (first != delivered.size() && !is_among(rest, delivered[first])) return {};
  std::string text =
      fmt::format("data_tail was moved to {}, past the record at {}", store->to, *record);
  if (std::ranges::adjacent_find(store->heads, std::not_equal_to{}) != store->heads.end()) {
    text += fmt::format("; before that, data_head was read as {}", fmt::join(store->heads, ", "));
  }
  return text;
}

std::string stored_to_head(std::uint64_t from, std::uint64_t to) {
  return fmt::format("it stored {:#x} to data_head, which was {:#x}", to, from);
}

void overwrite_released(std::span<std::byte> data, const Tails& tails) {
  if (tails.moved() > tails.published() || tails.published() > data.size()) return;
  const std::uint64_t length = tails.moved();
  for (std::uint64_t i = 0; i < length; ++i) {
    data[static_cast<std::size_t>((tails.before + i) % data.size())] = kReleased;
  }
}

}  // namespace perfring::conformance
