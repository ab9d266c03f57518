#include "harness/program/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<perfring::Json>;
template class nlohmann::detail::lexer<perfring::Json, perfring::internal::JsonText>;
template class nlohmann::detail::parser<perfring::Json, perfring::internal::JsonText>;
template class nlohmann::detail::json_sax_dom_parser<perfring::Json>;
template class nlohmann::detail::json_sax_dom_callback_parser<perfring::Json>;
