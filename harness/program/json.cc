#include "harness/program/json.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;
template class nlohmann::detail::lexer<nlohmann::json, perfring::internal::JsonText>;
template class nlohmann::detail::lexer<nlohmann::ordered_json, perfring::internal::JsonText>;
template class nlohmann::detail::parser<nlohmann::json, perfring::internal::JsonText>;
template class nlohmann::detail::parser<nlohmann::ordered_json, perfring::internal::JsonText>;
template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_parser<nlohmann::ordered_json>;
template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::ordered_json>;

template nlohmann::json nlohmann::json::parse(const char*, const char*,
                                              nlohmann::json::parser_callback_t, bool, bool);
