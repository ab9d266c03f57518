#ifndef HARNESS_PROGRAM_JSON_H_
#define HARNESS_PROGRAM_JSON_H_

// nlohmann's JSON, compiled once, in json.cc: each source that reads or writes JSON would otherwise
// instantiate its classes again, which takes most of a second. Objects keep their order.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace perfring {

using Json = nlohmann::ordered_json;

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

// Nobody calls operator""_json, which calls it, and which a compiler would instantiate it for in
// each source that includes <nlohmann/json.hpp>.
extern template nlohmann::json nlohmann::json::parse(const char*, const char*,
                                                     nlohmann::json::parser_callback_t, bool, bool);

#endif  // HARNESS_PROGRAM_JSON_H_
