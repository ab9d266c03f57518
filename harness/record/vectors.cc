#include "harness/record/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness/program/console.h"
#include "harness/program/numbers.h"
#include "perfring/perf_event.h"
#include "perfring/record/fields.h"
#include "perfring/record/layout.h"
#include "perfring/record/read_values.h"
#include "perfring/record/uapi.h"

namespace perfring::record {
namespace {

// Thrown for a wrong line; what() gives the reason.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

const Json* find(const Json& object, const char* name) {
  const auto place = object.find(name);
  return place == object.end() ? nullptr : &*place;
}

std::string text(const Json& line, const char* name) {
  const Json* const field = find(line, name);
  if (field == nullptr) return {};
  if (!field->is_string()) throw Refused{fmt::format("field '{}' is not a string", name)};
  return field->get<std::string>();
}

std::uint64_t number(const Json& object, const char* name) {
  const Json* const field = find(object, name);
  if (field == nullptr) return 0;
  if (const auto value = number_of(*field)) return *value;
  throw Refused{fmt::format("field '{}' is not a number: give 17 or \"0x11\"", name)};
}

std::vector<std::byte> bytes_of(const Json& line, const char* name) {
  const std::string digits = text(line, name);
  if (digits.size() % 2 != 0) {
    throw Refused{fmt::format("field '{}' has an odd number of hexadecimal digits", name)};
  }
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::string pair = digits.substr(i, 2);
    const auto byte = parse_number<std::uint8_t>(pair, 16);
    if (!byte) {
      throw Refused{
          fmt::format("field '{}': {} is not two hexadecimal digits", name, in_quotes(pair))};
    }
    bytes.push_back(static_cast<std::byte>(*byte));
  }
  return bytes;
}

constexpr unsigned kSampleIdAllBit = 18;  // in perf_event_attr's word of bit-fields (`flags`)
constexpr unsigned kBuildIdBit = 34;

void set_flags(perf_event_attr& attr, std::uint64_t flags) {
  attr.sample_id_all = flags >> kSampleIdAllBit & 1;
  attr.build_id = flags >> kBuildIdBit & 1;
}

perf_event_attr attr_of(const Json& fields) {
  if (!fields.is_object()) throw Refused{"field 'attr' is not an object"};
  perf_event_attr attr{};
  attr.sample_type = number(fields, "sample_type");
  attr.read_format = number(fields, "read_format");
  attr.branch_sample_type = number(fields, "branch_sample_type");
  attr.sample_regs_user = number(fields, "sample_regs_user");
  attr.sample_regs_intr = number(fields, "sample_regs_intr");
  if (fields.contains("flags")) {
    set_flags(attr, number(fields, "flags"));
  } else {
    attr.sample_id_all = number(fields, "sample_id_all") != 0;
    attr.build_id = number(fields, "build_id") != 0;
  }
  return attr;
}

// Reads a perf_event_attr from bytes in this machine's byte order. Fields that an older, shorter
// attr lacks are 0.
perf_event_attr attr_of(std::vector<std::byte> bytes) {
  constexpr std::size_t kSmallest = 64;  // PERF_ATTR_SIZE_VER0
  if (bytes.size() < kSmallest) throw Refused{"field 'attr_hex' has fewer than 64 bytes"};
  bytes.resize(sizeof(perf_event_attr));
  perf_event_attr attr;
  std::memcpy(&attr, bytes.data(), sizeof attr);
  return attr;
}

Vector vector_of(const Json& line) {
  if (!line.is_object()) throw Refused{"it is not an object"};
  Vector vector;
  vector.name = text(line, "name");
  if (vector.name.empty()) throw Refused{"field 'name' is missing or empty"};
  vector.arch = text(line, "arch");
  if (!line.contains("bytes")) throw Refused{"field 'bytes' is missing"};
  vector.bytes = bytes_of(line, "bytes");
  if (const Json* const attr = find(line, "attr")) {
    vector.attr = attr_of(*attr);
  } else if (line.contains("attr_hex")) {
    vector.attr = attr_of(bytes_of(line, "attr_hex"));
  } else if (line.contains("read_format")) {
    vector.is_read = true;
    vector.attr.read_format = number(line, "read_format");
  } else {
    throw Refused{"field 'attr' is missing"};
  }
  if (const Json* const known = find(line, "known")) {
    if (!known->is_object()) throw Refused{"field 'known' is not an object"};
    vector.known = *known;
  }
  for (const char* const name : {"record", "type", "misc", "size"}) {
    if (!vector.is_read && line.contains(name)) vector.stated[name] = line[name];
  }
  return vector;
}

}  // namespace

std::expected<Vector, std::string> parse_vector(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::unexpected("it is not JSON");
  try {
    return vector_of(json);
  } catch (const Refused& refused) {
    return std::unexpected(refused.what());
  }
}

VectorsRead read_vectors(std::string_view text) {
  constexpr bool kLittle = std::endian::native == std::endian::little;
  VectorsRead read;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto vector = parse_vector(line);
    if (!vector) {
      read.refused.push_back(fmt::format("line {}: {}", number, vector.error()));
    } else if (vector->arch.contains(kLittle ? "big endian" : "little endian")) {
      read.refused.push_back(fmt::format(
          "line {}: {} is from a machine with the other byte order: decode it on such a machine",
          number, in_quotes(vector->name)));
    } else {
      read.vectors.push_back(*std::move(vector));
    }
  }
  return read;
}

std::expected<std::vector<Vector>, std::string> parse_vectors(std::string_view text) {
  VectorsRead read = read_vectors(text);
  if (!read.refused.empty()) return std::unexpected(std::move(read.refused.front()));
  return std::move(read.vectors);
}

namespace {

std::string hex(Bytes bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

// Whether the text is UTF-8. Otherwise dump() would throw.
bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

class Collector final : public FieldVisitor {
 public:
  explicit Collector(Json json) { open_.push_back({{}, std::move(json)}); }
  Json take() && { return std::move(open_.front().json); }

  void number(std::string_view name, std::uint64_t value) override { put(name, value); }
  void address(std::string_view name, std::uint64_t value) override {
    put(name, fmt::format("{:#x}", value));
  }
  void text(std::string_view name, std::string_view value) override {
    std::string copy{value};
    put(name, is_utf8(copy) ? std::move(copy) : one_line(copy));
  }
  void bytes(std::string_view name, Bytes value) override { put(name, hex(value)); }
  void begin_object(std::string_view name) override {
    open_.push_back({std::string{name}, Json::object()});
  }
  void end_object() override { close(); }
  void begin_array(std::string_view name) override {
    open_.push_back({std::string{name}, Json::array()});
  }
  void end_array() override { close(); }

 private:
  struct Open {
    std::string name;
    Json json;
  };

  void put(std::string_view name, Json value) {
    Json& into = open_.back().json;
    if (into.is_array()) {
      into.push_back(std::move(value));
    } else {
      into[std::string{name}] = std::move(value);
    }
  }
  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    put(done.name, std::move(done.json));
  }

  std::vector<Open> open_;
};

}  // namespace

Json to_json(const Any& record) {
  const perf_event_header& header = header_of(record);
  const char* const name = type_name(header.type);
  Json json{{"record", name != nullptr ? name : "unknown"},
            {"header", {{"type", header.type}, {"misc", header.misc}, {"size", header.size}}}};
  Collector fields{std::move(json)};
  visit_fields(record, fields);
  return std::move(fields).take();
}

Json to_json(const ReadValues& values) {
  Collector fields{Json::object()};
  visit_fields(values, fields);
  return std::move(fields).take();
}

Json decoded(const Vector& vector) {
  Json json{{"name", one_line(vector.name)}};
  if (!vector.is_read) {
    const Layout layout{vector.attr};
    json.update(to_json(decode(vector.bytes, layout)));
  } else if (const auto values = ReadValues::over(vector.bytes, vector.attr.read_format)) {
    json.update(to_json(*values));
  } else {
    json["malformed"] = "value";
  }
  return json;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

}  // namespace perfring::record
