#include "harness/model/litmus/text.h"

#include <fmt/format.h>

#include <istream>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/model/engine/usage_error.h"
#include "harness/program/json.h"

namespace perfring::model {
namespace {

constexpr int kListsMax = 256;  // lists within lists

// Called for each piece of the JSON that is parsed. Throws UsageError for defects that the result
// would no longer show.
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    // The library prints the list of an error recursively, so a deep list is refused here.
    if (depth > kListsMax) throw UsageError{fmt::format("nested deeper than {}", kListsMax)};
    if (event == Event::object_start) {
      if (depth == 0) wrapped_ = true;
      objects_.emplace_back();
      if (depth == program_depth() && (!wrapped_ || objects_[0].field == "programs")) {
        ++program_;
        name_.clear();
      }
    } else if (event == Event::object_end) {
      objects_.pop_back();
    } else if (event == Event::key) {
      begin_field(parsed.get<std::string>());
    } else if (event == Event::value && objects_.size() == outer() + 1 &&
               objects_.back().field == "name" && parsed.is_string()) {
      name_ = parsed.get<std::string>();
    }
    return true;
  }

 private:
  // The programs are in a list, or in an object around the list.
  int program_depth() const { return wrapped_ ? 2 : 1; }
  std::size_t outer() const { return wrapped_ ? 1 : 0; }

  struct Object {
    std::string field;  // the last one begun
    std::set<std::string> fields;
  };

  void begin_field(std::string field) {
    Object& object = objects_.back();
    if (!object.fields.insert(field).second) {
      std::string where;
      if (program_ != 0) {
        where = "program " + (name_.empty() ? fmt::format("number {}", program_) : name_) + ": ";
      }
      for (std::size_t i = program_ == 0 ? 0 : outer(); i + 1 < objects_.size(); ++i) {
        where += fmt::format("field '{}': ", objects_[i].field);
      }
      throw UsageError{fmt::format("{}field '{}' is given twice", where, field)};
    }
    object.field = std::move(field);
  }

  bool wrapped_ = false;
  std::vector<Object> objects_;  // the open objects, outermost first
  std::size_t program_ = 0;
  std::string name_;
};

}  // namespace

Json parse_litmus_json(std::istream& file) {
  Watch watch;
  FieldLimit limit;
  try {
    return Json::parse(file, [&](int depth, Json::parse_event_t event, Json& parsed) {
      return limit(depth, event, parsed) && watch(depth, event, parsed);
    });
  } catch (const Json::exception& error) {
    throw UsageError{"not JSON: " + message_of(error)};
  } catch (const std::length_error& error) {
    throw UsageError{error.what()};
  }
}

std::string message_of(const std::exception& error) {
  const std::string_view what = error.what();
  return std::string{what.substr(what.find(' ') + 1)};
}

std::int64_t integer_of(const Json& number) {
  if (number.is_number_unsigned()) return static_cast<std::int64_t>(number.get<std::uint64_t>());
  if (number.is_number_integer()) return number.get<std::int64_t>();
  throw UsageError{fmt::format("{} is not an integer of 64 bits", number.dump())};
}

}  // namespace perfring::model
