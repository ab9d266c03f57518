#include "harness/conformance/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>

#include "harness/kernel/ring_memory.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "perfring/perf_event.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/to_string.h"
#include "perfring/record/view.h"
#include "perfring/record/whole.h"
#include "perfring/ring/cursor.h"

namespace perfring::conformance {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kTextMax = 160;

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, &bytes[at], sizeof(value));
  return value;
}

std::string wrong_with(const Malformed& bad, const perf_event_header& header,
                       std::uint64_t available) {
  switch (bad.defect) {
    case Defect::BadPositions:
      return "data_head and data_tail are impossible: further apart than the ring, or not "
             "8-aligned";
    case Defect::BadSize:
      return fmt::format("header.size {}: {}", header.size,
                         header.size > available ? "exceeds the unread bytes"
                                                 : "not a multiple of 8, or less than 8");
    case Defect::BadSample:
      return "the raw size exceeds the record";
    case Defect::BadLost:
      return "a LOST without a count";
    case Defect::UnexpectedType:
      return fmt::format("type {} is neither SAMPLE nor LOST", header.type);
  }
  return to_string(bad.defect);
}

// Parses the text of vector.h's to_text().
std::expected<std::vector<std::byte>, std::string> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  const auto digit = [](char c) -> unsigned {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    return c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10 : 16;
  };
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    if (i + 1 >= text.size() || digit(text[i]) > 15 || digit(text[i + 1]) > 15) {
      return std::unexpected("its bytes are not hexadecimal digits");
    }
    const auto byte = static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1]));
    std::size_t times = 1;
    i += 2;
    if (i < text.size() && text[i] == '*') {
      times = 0;
      for (++i; i < text.size() && digit(text[i]) < 10 && times < (1U << 24); ++i) {
        times = times * 10 + digit(text[i]);
      }
    }
    bytes.insert(bytes.end(), times, byte);
  }
  return bytes;
}

InspectedRing vector_ring(const Json& one, std::size_t turn) {
  InspectedRing ring;
  const auto position = [](const Json& text) {
    return std::uint64_t{std::stoull(text.get<std::string>())};
  };
  const std::size_t pages = one.at("pages");
  if (!std::has_single_bit(pages) || pages > 1024)
    throw std::invalid_argument{"its pages are not a power of two up to 1024"};
  ring.data.resize(pages * kPage);
  ring.sample_type = one.at("sample_type");
  ring.sample_id_all = one.at("sample_id_all");
  ring.has_sample_type = true;
  ring.tail = ring.head = position(one.at("start"));
  for (std::size_t i = 0; i < turn; ++i) {
    const auto& now = one.at("turns").at(i);
    if (now.at("cpu") != one.at("turns").at(turn - 1).at("cpu")) continue;  // another ring's turn
    ring.tail += static_cast<std::uint32_t>(ring.head - ring.tail);
    ring.head = position(now.at("head"));
    for (const auto& write : now.at("writes")) {
      const auto bytes = bytes_of(write.at(1).get<std::string>());
      const std::size_t at = write.at(0);
      if (!bytes || at > ring.data.size() || bytes->size() > ring.data.size() - at) {
        throw std::invalid_argument{"a write outside the ring"};
      }
      std::ranges::copy(*bytes, ring.data.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  return ring;
}

}  // namespace

std::expected<InspectedRing, std::string> ring_of_image(std::span<const std::byte> file) {
  if (file.size() < 2 * kPage || !std::has_single_bit(file.size() - kPage)) {
    return std::unexpected(
        "it is not a ring image: a control page of 4096 bytes and 2^n data pages are expected");
  }
  const std::span<const std::byte> data = file.subspan(kPage);
  return InspectedRing{
      .head = number_at<std::uint64_t>(file, offsetof(perf_event_mmap_page, data_head)),
      .tail = number_at<std::uint64_t>(file, offsetof(perf_event_mmap_page, data_tail)),
      .data = {data.begin(), data.end()}};
}

std::expected<InspectedRing, std::string> ring_of_fuzz_input(std::span<const std::byte> file) {
  std::size_t at = 0;
  const auto take = [&](std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size && at < file.size(); ++i, ++at) {
      value |= std::to_integer<std::uint64_t>(file[at]) << (8 * i);
    }
    return value;
  };
  if (file.empty()) return std::unexpected("it is empty");
  const std::uint64_t shape = take(1);
  InspectedRing ring{.data = std::vector<std::byte>(kPage << ((shape & 7) % 5))};
  ring.tail = take(8);
  ring.head = ring.tail + take(8);
  at += static_cast<std::size_t>((shape >> 5 & 3) + 11 * (shape >> 3 & 3));
  const std::size_t times = (shape & 0x80) != 0 ? 1 + static_cast<std::size_t>(take(1)) : 1;
  const std::span<const std::byte> bytes = file.subspan(std::min(at, file.size()));
  const std::size_t written = std::min(bytes.size() * times, ring.data.size());
  for (std::size_t i = 0; i < written; ++i) {
    ring.data[static_cast<std::size_t>((ring.tail + i) % ring.data.size())] =
        bytes[i % bytes.size()];
  }
  return ring;
}

std::expected<InspectedRing, std::string> ring_of_vector(std::string_view file, std::string_view id,
                                                         std::size_t turn) {
  try {
    const auto index = Json::parse(file, FieldLimit{});
    for (const auto& one : index.at("cases")) {
      if (one.at("id") != id) continue;
      const std::size_t turns = one.at("turns").size();
      if (turn >= 1 && turn <= turns) return vector_ring(one, turn);
      return std::unexpected(fmt::format("the case has turns 1 to {}", turns));
    }
    return std::unexpected(fmt::format("it has no case {}", in_quotes(id)));
  } catch (const std::exception& error) {
    return std::unexpected("it is not an index of vectors: " + one_line(error.what()));
  }
}

Inspection inspect(const InspectedRing& ring) {
  kernel::RingMemory memory{ring.data.size() / kPage};
  auto& page = *reinterpret_cast<perf_event_mmap_page*>(memory.bytes().data());
  std::ranges::copy(ring.data, memory.bytes().begin() + kPage);
  page.data_head = ring.head;
  page.data_tail = ring.tail;
  Inspection inspection{.head = ring.head,
                        .tail = ring.tail,
                        .size = ring.data.size(),
                        .unread = static_cast<std::uint32_t>(ring.head - ring.tail),
                        .has_sample_type = ring.has_sample_type};
  perf_event_attr attr{};
  attr.sample_type = ring.sample_type;
  attr.sample_id_all = ring.sample_id_all;
  const record::Layout layout{attr};
  std::vector<std::byte> scratch(record::kRecordMax);

  const Bytes data = memory.bytes().subspan(kPage);
  auto cursor = *Cursor<>::over(page, data);
  cursor.look();
  std::uint64_t position = ring.tail;
  while (const auto one = cursor.next()) {
    InspectedRecord each{.position = position,
                         .offset = static_cast<std::uint64_t>(one->head().data() - data.data()),
                         .size = one->size(),
                         .header = one->header(),
                         .straddles = !one->tail().empty()};
    const record::Any any =
        record::decode(record::whole(one->head(), one->tail(), scratch), layout);
    each.text = record::to_string(any);
    if (each.text.size() > kTextMax) each.text = each.text.substr(0, kTextMax) + "...";
    const PerfEvent event = one->event();
    // The drain takes RAW samples only. For other sample types the record's fields decide.
    const bool whole = one->size() == each.header.size;
    const bool has_fields =
        ring.sample_type != PERF_SAMPLE_RAW && whole && each.header.type == PERF_RECORD_SAMPLE;
    const auto* const unfit = std::get_if<record::Malformed>(&any);
    if (has_fields) {
      each.delivers = unfit == nullptr ? "sample" : "malformed";
      if (unfit != nullptr) each.wrong = fmt::format("the sample has no room for {}", unfit->field);
    } else if (std::holds_alternative<Lost>(event)) {
      each.delivers = "lost";
    } else if (std::holds_alternative<Sample>(event)) {
      each.delivers = "sample";
    } else {
      each.delivers = "malformed";
      each.wrong = wrong_with(std::get<Malformed>(event), each.header,
                              inspection.unread - (position - ring.tail));
    }
    position += one->size();
    inspection.records.push_back(std::move(each));
  }
  cursor.release();
  inspection.tail_after = page.data_tail;
  return inspection;
}

std::string to_text(const Inspection& of, bool colours) {
  std::string text = fmt::format("ring of {} bytes, data_tail {:#x}, data_head {:#x}: {} unread\n",
                                 of.size, of.tail, of.head, counted(of.unread, "byte"));
  if (!of.has_sample_type) {
    text +=
        "samples are assumed to have only RAW: the ring does not contain their type "
        "(--sample-type)\n";
  }
  for (const InspectedRecord& each : of.records) {
    const bool bad = !each.wrong.empty();
    text += fmt::format("{:#x} (at {}{}) {}: {}", each.position, each.offset,
                        each.straddles ? ", straddles the end" : "", counted(each.size, "byte"),
                        bad ? "" : one_line(each.text));
    if (bad) {
      text +=
          fmt::format("{}{}{}", colours ? "\x1b[31m" : "", each.wrong, colours ? "\x1b[0m" : "");
    }
    text += fmt::format("\n    perfring delivers: {}\n", each.delivers);
  }
  return text + fmt::format("data_tail moves to {:#x}\n", of.tail_after);
}

Json to_json(const Inspection& of) {
  Json json{{"size", of.size},
            {"data_tail", of.tail},
            {"data_head", of.head},
            {"unread", of.unread},
            {"says_sample_type", of.has_sample_type},
            {"tail_after", of.tail_after},
            {"records", Json::array()}};
  for (const InspectedRecord& each : of.records) {
    json["records"].push_back({{"position", each.position},
                               {"offset", each.offset},
                               {"size", each.size},
                               {"type", each.header.type},
                               {"misc", each.header.misc},
                               {"header_size", each.header.size},
                               {"straddles", each.straddles},
                               {"delivers", each.delivers},
                               {"wrong", each.wrong},
                               {"text", each.text}});
  }
  return json;
}

std::string to_svg(const Inspection& of) {
  constexpr double kWidth = 960;
  constexpr double kTop = 40;
  const auto x_of = [&](std::uint64_t position) {
    return static_cast<double>(position % of.size) * kWidth / static_cast<double>(of.size);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-10 0 {} 110\" "
      "font-family=\"monospace\" "
      "font-size=\"11\">\n<rect x=\"0\" y=\"{}\" width=\"{}\" height=\"30\" fill=\"#eee\" "
      "stroke=\"#888\"/>\n",
      kWidth + 20, kTop, kWidth);
  for (const InspectedRecord& each : of.records) {
    const char* const colour = each.delivers == "sample" ? "#8bc34a"
                               : each.delivers == "lost" ? "#ffc107"
                                                         : "#e53935";
    // A record that straddles the ring's end is two boxes.
    const std::uint64_t before = std::min(each.size, of.size - each.offset);
    for (const auto& [at, size] : {std::pair{each.offset, before}, {0, each.size - before}}) {
      if (size == 0) continue;
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"30\" fill=\"{}\" "
          "stroke=\"#333\" stroke-width=\"0.3\"><title>{:#x}: {} bytes, {}</title></rect>\n",
          x_of(at), kTop, static_cast<double>(size) * kWidth / static_cast<double>(of.size), colour,
          each.position, each.size, each.delivers);
    }
  }
  for (const auto& [name, position, y] :
       {std::tuple{"data_tail", of.tail, 30}, {"data_head", of.head, 90}}) {
    svg += fmt::format(
        "<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#000\"/>"
        "<text x=\"{0:.2f}\" y=\"{3}\">{4} {5:#x}</text>\n",
        x_of(position), kTop - 8, kTop + 38, y, name, position);
  }
  return svg + "</svg>\n";
}

}  // namespace perfring::conformance
