#include "perfring/event/tracepoint_fields.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace perfring::event {
namespace {

std::unexpected<Finding> wrong(std::string problem, std::string advice) {
  return std::unexpected(
      Finding{.field = "format", .says = std::move(problem), .advice = std::move(advice)});
}

// Returns the text between `before` and the next semicolon.
std::optional<std::string_view> part_of(std::string_view line, std::string_view before) {
  const std::size_t begin = line.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(begin + before.size());
  const std::size_t end = rest.find(';');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

std::optional<std::size_t> number_of(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// Parses "field:char comm[16];	offset:8;	size:16;	signed:0;".
std::optional<FieldFormat> field_of(std::string_view line) {
  const auto offset = number_of(part_of(line, "\toffset:"));
  const auto size = number_of(part_of(line, "\tsize:"));
  auto declared = part_of(line, "field:");
  if (!declared || !offset || !size) return std::nullopt;
  FieldFormat field;
  field.offset = *offset;
  field.size = *size;
  field.is_signed = number_of(part_of(line, "\tsigned:")).value_or(0) != 0;
  for (const auto& [prefix, place] : {std::pair{"__data_loc ", FieldFormat::Place::DataLocation},
                                      std::pair{"__rel_loc ", FieldFormat::Place::Relative}}) {
    const std::string_view before{prefix};
    if (!declared->starts_with(before)) continue;
    field.place = place;
    declared->remove_prefix(before.size());
  }
  // "char[] name" with __data_loc, "char name[16]" or "char name" otherwise.
  const std::size_t space = declared->find_last_of(' ');
  if (space == std::string_view::npos) return std::nullopt;
  std::string_view name = declared->substr(space + 1);
  std::string_view type = declared->substr(0, space);
  const std::size_t bracket = name.find('[');
  field.is_array = bracket != std::string_view::npos || type.ends_with("[]");
  if (type.ends_with("[]")) type.remove_suffix(2);
  field.name = name.substr(0, bracket);
  field.type = type;
  return field;
}

}  // namespace

std::expected<TracepointFormat, Finding> TracepointFormat::parse(std::string_view text) {
  TracepointFormat format;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("print fmt")) break;
    if (!line.starts_with("\tfield:")) continue;
    auto field = field_of(line);
    if (!field) return wrong("a line is not a field: " + std::string{line}, "give tracefs's text");
    format.fields_.push_back(*std::move(field));
  }
  if (format.fields_.empty()) return wrong("the format has no field", "give tracefs's text");
  return format;
}

std::expected<TracepointFormat, Finding> TracepointFormat::of(const std::string& tracepoint,
                                                              System& system) {
  // tracepoint_id() returns what is wrong with the name.
  if (auto id = internal::tracepoint_id(tracepoint, system); !id) {
    return std::unexpected(std::move(id).error());
  }
  const auto folder = internal::tracing_events(system);
  std::string path = tracepoint;
  path.replace(path.find(':'), 1, "/");
  const auto text = system.read(folder.value_or("") + "/" + path + "/format");
  if (!text) return wrong(path + "/format: " + text.error().message(), "look into tracefs");
  return parse(*text);
}

std::expected<const FieldFormat*, Finding> TracepointFormat::find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &FieldFormat::name);
  if (found != fields_.end()) return &*found;
  std::vector<std::string> names;
  for (const FieldFormat& each : fields_) names.push_back(each.name);
  return wrong("the tracepoint has no field '" + std::string{name} + "'",
               "the most similar are " + internal::nearest(name, names));
}

std::expected<std::size_t, Finding> TracepointFormat::number(std::string_view name,
                                                             std::size_t size,
                                                             bool is_signed) const {
  const auto found = find(name);
  if (!found) return std::unexpected(found.error());
  const FieldFormat& field = **found;
  const bool is_number = !field.is_array && field.place == FieldFormat::Place::Here;
  if (!is_number || field.size != size || field.is_signed != is_signed) {
    const std::string kind =
        is_number ? (field.is_signed ? "a signed integer of " : "an unsigned integer of ") +
                        std::to_string(field.size) + " bytes"
                  : "an array";
    return wrong("the field " + field.name + " is " + kind + " (" + field.type + ")",
                 is_number ? "ask for that type" : "read it by text()");
  }
  return field.offset;
}

std::expected<TextField, Finding> TracepointFormat::text(std::string_view name) const {
  const auto found = find(name);
  if (!found) return std::unexpected(found.error());
  const FieldFormat& field = **found;
  const bool is_char = field.type == "char" || field.type == "const char";
  if (!field.is_array || !is_char) {
    return wrong("the field " + field.name + " is not text (" + field.type + ")",
                 "read it by field<T>()");
  }
  return TextField{field};
}

}  // namespace perfring::event
