#ifndef HARNESS_MODEL_LITMUS_LITMUS_JSON_H_
#define HARNESS_MODEL_LITMUS_LITMUS_JSON_H_

#include <cstdint>
#include <istream>
#include <nlohmann/json.hpp>
#include <string>

namespace perfring::model {

// The JSON of a file of litmus tests. Throws UsageError for text that is not JSON, for lists nested
// too deep, and for an object that has a field twice, of which the library would keep the last.
nlohmann::json parse_litmus_json(std::istream& file);

// Without "[json.exception.type_error.302] ".
std::string message_of(const nlohmann::json::exception& error);

// Neither rounded nor cut off: a misread number could agree by chance.
std::int64_t integer_of(const nlohmann::json& number);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_LITMUS_JSON_H_
