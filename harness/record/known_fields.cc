#include "harness/record/known_fields.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <regex>
#include <utility>

#include "harness/record/field_lookup.h"

namespace perfring::record {

bool agrees(const Json& known, const Json& found) {
  const auto number = number_of(known);
  if (number && number_of(found)) return *number == *number_of(found);
  if (known.is_object() && found.is_object()) {
    return std::ranges::all_of(known.items(), [&found](const auto& item) {
      const Json* const field = child(&found, item.key());
      return field != nullptr && agrees(item.value(), *field);
    });
  }
  if (known.is_array() && found.is_array()) {
    return std::ranges::equal(known, found, agrees);
  }
  return known == found;
}

namespace {

// Returns the value as ASCII: raw data may contain bytes that are not UTF-8.
std::string shown(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

class Comparer {
 public:
  Comparer(const Vector& vector, const Json& record) : vector_{vector}, lookup_{vector, record} {}

  void compare(const std::string& name, const Json& known) {
    if (name == "note") return;
    if (compare_bound(name, known)) return;
    auto found = lookup_.find(name, known);
    if (found && found->is_object() && !known.is_object()) found = whole_of(*found);
    if (!found) {
      result_.absent.push_back(name);
      return;
    }
    add_result(name, agrees(known, *found), known, *found);
  }
  Comparison take() && { return std::move(result_); }
  void add(const Comparison& other) {
    result_.compared += other.compared;
    result_.of_known += other.of_known;
    result_.differences.insert(result_.differences.end(), other.differences.begin(),
                               other.differences.end());
    result_.absent.insert(result_.absent.end(), other.absent.begin(), other.absent.end());
  }

 private:
  void add_result(const std::string& name, bool agree, const Json& known, const Json& found) {
    ++result_.compared;
    if (!agree) result_.differences.push_back({name, shown(known), shown(found)});
  }

  // Returns the weight itself from the object `weight`: `full`, or var1_dw of a WEIGHT_STRUCT.
  static std::optional<Json> whole_of(const Json& parts) {
    for (const char* const name : {"full", "var1_dw"}) {
      if (const Json* const part = child(&parts, name)) return copy_of(*part);
    }
    return std::nullopt;
  }

  // Compares a field of which only bounds are known. Returns false if `name` is not such a field.
  bool compare_bound(const std::string& name, const Json& known) {
    static const std::regex kBounds{".*at least ([0-9]{1,19}), below ([0-9]{1,19})"};
    const auto bound = number_of(known);
    std::smatch parts;
    if (known.is_string() && matches(known.get_ref<const std::string&>(), parts, kBounds)) {
      return within(name, known, lookup_.number(name), std::stoull(parts[1]),
                    std::stoull(parts[2]) - 1);
    }
    if (!bound) return false;
    constexpr std::uint64_t kFunction = 4096;  // more than the size of any probed function
    constexpr std::uint64_t kEntry = 16;       // a probe may be placed after an endbr64
    if (name == "time_min_monotonic") {
      return within(name, known, lookup_.number("time"), *bound, ~std::uint64_t{0});
    }
    if (name == "time_max_monotonic") return within(name, known, lookup_.number("time"), 0, *bound);
    if (name == "ip_in_function_at") {
      return within(name, known, lookup_.number("ip"), *bound, *bound + kFunction);
    }
    // read(2) returned this count after the sample. A sibling of the leader may have counted the
    // sample's cause only in between (R15).
    if (is_sibling(name)) {
      const Json* const type = child(&vector_.stated, "record");
      const bool counts_later = type != nullptr && *type == "SAMPLE" && *bound != 0;
      return within(name, known, lookup_.number(name), *bound - counts_later, *bound);
    }
    if (name == "function") return within(name, known, lookup_.probed(), *bound, *bound + kEntry);
    return false;
  }

  static bool is_sibling(const std::string& name) {
    return name.starts_with("value") && name.size() > 5 && name[5] >= '1' && name[5] <= '9';
  }

  bool within(const std::string& name, const Json& known, std::optional<std::uint64_t> found,
              std::uint64_t least, std::uint64_t most) {
    if (found) {
      add_result(name, *found >= least && *found <= most, known, *found);
    } else {
      result_.absent.push_back(name);
    }
    return true;
  }

  const Vector& vector_;
  FieldLookup lookup_;
  Comparison result_;
};

}  // namespace

Comparison compare(const Vector& vector, const Json& record) {
  Comparer comparer{vector, record};
  const Json* const malformed = child(&record, "malformed");
  if (malformed != nullptr && !vector.known.contains("malformed")) {
    comparer.compare("malformed", "nothing");
  }
  // Compared with the header alone, because a BPF_EVENT has a field `type` of its own.
  const Json header = record.value("header", Json::object());
  Comparer of_header{vector, header};
  for (const auto& [name, value] : vector.stated.items()) {
    (name == "record" ? comparer : of_header).compare(name, value);
  }
  comparer.add(std::move(of_header).take());
  Comparer of_known{vector, record};
  for (const auto& [name, value] : vector.known.items()) of_known.compare(name, value);
  Comparison known = std::move(of_known).take();
  known.of_known = known.compared;
  comparer.add(known);
  return std::move(comparer).take();
}

}  // namespace perfring::record
