#ifndef HARNESS_PROGRAM_JSON_H_
#define HARNESS_PROGRAM_JSON_H_

// nlohmann's JSON, compiled once, in json.cc. Otherwise each source that reads or writes JSON would
// instantiate its classes again, which takes most of a second. Objects keep their order.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace perfring {

using Json = nlohmann::ordered_json;

// A callback for parse(), for files from users. Throws std::length_error for an object with more
// than 1000 fields: the lookup of a field is a linear search, so that 100 000 fields would take a
// minute.
class FieldLimit {
 public:
  bool operator()(int, Json::parse_event_t event, const Json&) {
    if (event == Json::parse_event_t::object_start) {
      fields_.push_back(0);
    } else if (event == Json::parse_event_t::object_end) {
      fields_.pop_back();
    } else if (event == Json::parse_event_t::key && ++fields_.back() > 1000) {
      throw std::length_error{"an object has more than 1000 fields"};
    }
    return true;
  }

 private:
  std::vector<std::size_t> fields_;  // of each open object
};

namespace internal {

using JsonText = decltype(nlohmann::detail::input_adapter(std::declval<const std::string&>()));

}  // namespace internal
}  // namespace perfring

extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<perfring::Json>;
extern template class nlohmann::detail::lexer<perfring::Json, perfring::internal::JsonText>;
extern template class nlohmann::detail::parser<perfring::Json, perfring::internal::JsonText>;
extern template class nlohmann::detail::json_sax_dom_parser<perfring::Json>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<perfring::Json>;

// operator""_json calls this function. Nothing here uses the operator, but without this declaration
// a compiler would instantiate the function in each source that includes <nlohmann/json.hpp>.
extern template nlohmann::json nlohmann::json::parse(const char*, const char*,
                                                     nlohmann::json::parser_callback_t, bool, bool);

#endif  // HARNESS_PROGRAM_JSON_H_
