#ifndef HARNESS_PROGRAM_JSON_H_
#define HARNESS_PROGRAM_JSON_H_

// nlohmann's JSON, compiled once, in json.cc: each source that reads or writes JSON would otherwise
// instantiate its classes again, which takes most of a second.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace perfring::internal {

using JsonText = decltype(nlohmann::detail::input_adapter(std::declval<const std::string&>()));

}  // namespace perfring::internal

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;
extern template class nlohmann::detail::lexer<nlohmann::json, perfring::internal::JsonText>;
extern template class nlohmann::detail::lexer<nlohmann::ordered_json, perfring::internal::JsonText>;
extern template class nlohmann::detail::parser<nlohmann::json, perfring::internal::JsonText>;
extern template class nlohmann::detail::parser<nlohmann::ordered_json,
                                               perfring::internal::JsonText>;
extern template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_parser<nlohmann::ordered_json>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::ordered_json>;

// operator""_json calls it: clang instantiates it in each source that includes <nlohmann/json.hpp>.
extern template nlohmann::json nlohmann::json::parse(const char*, const char*,
                                                     nlohmann::json::parser_callback_t, bool, bool);

#endif  // HARNESS_PROGRAM_JSON_H_
