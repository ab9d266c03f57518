#ifndef HARNESS_RECORD_FIELD_LOOKUP_H_
#define HARNESS_RECORD_FIELD_LOOKUP_H_

// FieldLookup looks up in a record, given as JSON, the value for a field name of `known`
// (known_fields.h).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "harness/program/json.h"
#include "harness/record/vectors.h"

namespace perfring::record {

inline const Json* child(const Json* of, const std::string& name) {
  if (of == nullptr || !of->is_object()) return nullptr;
  const auto place = of->find(name);
  return place == of->end() ? nullptr : &*place;
}

// Copies `json` into an optional. `return json;` would be ambiguous from libstdc++ 16 on, because
// Json converts implicitly to every type that can be constructed from it, std::optional<Json>
// included.
inline std::optional<Json> copy_of(const Json& json) {
  return std::optional<Json>{std::in_place, json};
}

// std::regex_match() with a limit on the length: std::regex recurses for each character.
inline bool matches(const std::string& text, std::smatch& parts, const std::regex& pattern) {
  constexpr std::size_t kLongest = 200;
  return text.size() <= kLongest && std::regex_match(text, parts, pattern);
}

// An element of any array in a record, or a field of such an element.
struct Element {
  std::string array;
  std::size_t index;
  std::string field;  // empty: the element itself
  const Json* value;
};

class FieldLookup {
 public:
  // `vector` and `record` must outlive the FieldLookup.
  FieldLookup(const Vector& vector, const Json& record);

  // Returns the value of `name`, or nullopt if the record has none. `known` is the expected value;
  // only its type is used, to choose between text and a number in raw data.
  std::optional<Json> find(const std::string& name, const Json& known) const;
  std::optional<std::uint64_t> number(const std::string& name) const;
  // Returns the address of the probed function from a probe's raw data. A return probe has two
  // addresses, of which this is the first.
  std::optional<std::uint64_t> probed() const;

 private:
  const Json* find_direct(const std::string& name) const;
  std::optional<Json> find_inside(const std::string& name) const;
  const Json* find_element(const std::string& name) const;
  std::optional<Json> find_in_misc(const std::string& name) const;
  std::optional<Json> find_in_raw(const std::string& name, bool is_text) const;
  std::optional<Json> find_register(const std::string& name) const;
  std::optional<Json> links() const;
  template <class T>
  std::optional<T> raw_at(std::size_t offset) const {
    T value{};
    if (offset > raw_.size() || raw_.size() - offset < sizeof value) return std::nullopt;
    std::memcpy(&value, raw_.data() + offset, sizeof value);
    return value;
  }
  std::optional<Json> raw_string(std::size_t offset, std::size_t size) const;

  const Vector& vector_;
  const Json& record_;
  std::vector<std::byte> raw_;
  std::vector<Element> elements_;
};

}  // namespace perfring::record

#endif  // HARNESS_RECORD_FIELD_LOOKUP_H_
