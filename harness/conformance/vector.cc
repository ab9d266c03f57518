#include "harness/conformance/vector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

namespace perfring::conformance {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kGap = 16;     // bytes that did not change, within one write
constexpr std::size_t kRepeat = 24;  // so many alike are counted

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
  return {{"head", std::to_string(turn.head)}, {"writes", writes}, {"expected", expected}};
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
          {"pages", of.settings.pages},
          {"sample_type", of.settings.sample_type},
          {"sample_id_all", of.settings.sample_id_all},
          {"start", std::to_string(of.settings.start)},
          {"turns", turns}};
}

}  // namespace

Vector vector_of(const Case& one) {
  rig::SimulatedRing ring{one.settings};
  CaseProducer producer{one, ring};
  Vector vector{&one, {}};
  std::vector<std::byte> before(ring.data().size());
  while (producer.turn()) {
    perf_event_mmap_page& page = ring.page();
    vector.turns.push_back(
        {page.data_head, writes_between(before, ring.data()), producer.expected()});
    before.assign(ring.data().begin(), ring.data().end());
    // A consumer's own position has 64 bits, a kernel's may have 32 (K47).
    page.data_tail += static_cast<std::uint32_t>(page.data_head - page.data_tail);
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
  // A line for each case, so that a difference is a line's.
  std::string text = head.dump();
  text.resize(text.size() - 2);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    text += fmt::format("{}\n{}", i == 0 ? "" : ",", to_json(vectors[i]).dump());
  }
  return text + "\n]}\n";
}

std::string to_text(std::span<const std::byte> bytes) {
  std::string text;
  bool apart = false;  // a repetition stands before
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
  page().data_offset = 4096;
  page().data_size = data().size();
  const std::uint64_t start = vector.of->settings.start;
  page().data_tail = start;
  page().data_head = vector.of->settings.word == kernel::Word::k32 ? start & 0xffff'ffff : start;
}

void RingImage::apply(const Turn& turn) {
  for (const Write& write : turn.writes) {
    std::ranges::copy(write.bytes, data().begin() + static_cast<std::ptrdiff_t>(write.at));
  }
  page().data_head = turn.head;
}

}  // namespace perfring::conformance
