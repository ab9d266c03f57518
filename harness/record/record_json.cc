#include "harness/record/record_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "harness/program/console.h"
#include "perfring/record/fields.h"

namespace perfring::record {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(Bytes bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

// Whether JSON can hold it: dump() refuses what is not UTF-8.
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
